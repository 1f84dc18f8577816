#ifndef QUERN_TESTS_FUZZ_RANDOM_ACTIONS_H_
#define QUERN_TESTS_FUZZ_RANDOM_ACTIONS_H_

#include <vector>

#include "optimizer/scheduler.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// Applies up to `count` random actions that are legal, each chosen among the legal ones of a few
/// dozen tries.
inline void ApplyRandomActions(Scheduler& scheduler, Random& random, int count) {
  static const std::vector<ActionKind> kKinds = {
      ActionKind::kUpcast,   ActionKind::kUpcast,  ActionKind::kUpcast, ActionKind::kUnroll,
      ActionKind::kUnroll,   ActionKind::kLocal,   ActionKind::kLocal,  ActionKind::kGroup,
      ActionKind::kGroupTop, ActionKind::kThread,  ActionKind::kSwap,   ActionKind::kPadTo,
      ActionKind::kPadTo,    ActionKind::kNoLocals};
  static const std::vector<int64_t> kAmounts = {0, 0, 2, 2,  3,  4,  4,  5,
                                                6, 7, 8, 11, 12, 13, 16, 32};
  int applied = 0;
  for (int attempt = 0; attempt < 40 && applied < count; ++attempt) {
    Action action;
    action.kind = random.Pick(kKinds);
    action.axis = static_cast<int>(random.Below(static_cast<int64_t>(scheduler.axes().size()) + 1));
    action.amount = action.kind == ActionKind::kSwap
                        ? random.Below(static_cast<int64_t>(scheduler.axes().size()) + 1)
                        : random.Pick(kAmounts);
    if (action.kind == ActionKind::kNoLocals) {
      if (!random.Chance(20)) continue;
      action.axis = 0;
      action.amount = 0;
    }
    if (scheduler.Apply(action).ok()) ++applied;
  }
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_RANDOM_ACTIONS_H_
