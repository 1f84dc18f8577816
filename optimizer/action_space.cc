#include "optimizer/action_space.h"

#include <algorithm>
#include <set>

#include "rewrite/scan.h"

namespace quern {
namespace {

// Sizes of register tiles: small ones for the side that is unrolled, multiples of the lanes of
// 32-bit elements for the side that is vectorised.
std::vector<int64_t> RegisterAmounts(const Target& target) {
  std::set<int64_t> amounts = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14};
  const int64_t lanes = target.vector_bytes / 4;
  for (int64_t n : {1, 2, 3, 4}) amounts.insert(n * lanes);
  return {amounts.begin(), amounts.end()};
}

constexpr int64_t kLocalAmounts[] = {2, 3, 4, 6, 8, 16, 32, 64};
constexpr int64_t kGroupAmounts[] = {2, 4, 8, 16};
constexpr int64_t kBlockAmounts[] = {2, 4, 8, 16, 32};
constexpr int64_t kPartAmounts[] = {16, 64, 256};  // for each core, of what is scanned
constexpr int64_t kLargestWhole = 16;  // axes up to this size may go into registers whole

void AddSplits(const Scheduler& s, ActionKind kind, const std::vector<int64_t>& amounts, bool whole,
               std::vector<Action>& actions) {
  const bool reduce =
      kind == ActionKind::kUnroll || kind == ActionKind::kGroup || kind == ActionKind::kGroupTop;
  const size_t count = reduce ? s.reduce_axes().size() : s.axes().size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t size = s.axes()[reduce ? s.reduce_axes()[i] : static_cast<int>(i)].size;
    for (int64_t amount : amounts) {
      if (amount < size && size % amount == 0) {
        actions.push_back({kind, static_cast<int>(i), amount});
      }
    }
    if (whole && size <= kLargestWhole) actions.push_back({kind, static_cast<int>(i), 0});
  }
}

std::vector<Action> Proposals(const Scheduler& s) {
  const Target& target = s.target();
  const std::vector<int64_t> registers = RegisterAmounts(target);
  std::vector<Action> actions;
  AddSplits(s, ActionKind::kUpcast, registers, true, actions);
  AddSplits(s, ActionKind::kUnroll, registers, true, actions);
  std::vector<int64_t> local(std::begin(kLocalAmounts), std::end(kLocalAmounts));
  AddSplits(s, ActionKind::kLocal, local, false, actions);
  for (size_t i = 0; i < s.axes().size(); ++i) {
    actions.push_back({ActionKind::kLocal, static_cast<int>(i), 0});
  }
  AddSplits(s, ActionKind::kGroup, {std::begin(kGroupAmounts), std::end(kGroupAmounts)}, false,
            actions);
  std::set<int64_t> blocks(std::begin(kBlockAmounts), std::end(kBlockAmounts));
  if (target.cores > 1) blocks.insert(target.cores);
  AddSplits(s, ActionKind::kGroupTop, {blocks.begin(), blocks.end()}, false, actions);
  for (size_t i = 0; i < s.axes().size(); ++i) {
    for (int64_t threads = target.cores; threads > 1; threads /= 2) {
      if (s.axes()[i].size % threads == 0) {
        actions.push_back({ActionKind::kThread, static_cast<int>(i), threads});
        break;  // The most threads that the axis allows.
      }
    }
    if (target.cores < 2 || !IsScanned(s.kernel(), s.axes()[i].range)) continue;
    for (int64_t parts : kPartAmounts) {
      if (s.axes()[i].size % (parts * target.cores) == 0) {
        actions.push_back({ActionKind::kThread, static_cast<int>(i), parts * target.cores});
      }
    }
  }
  for (size_t i = 0; i < s.axes().size(); ++i) {
    for (size_t j = i + 1; j < s.axes().size(); ++j) {
      actions.push_back({ActionKind::kSwap, static_cast<int>(i), static_cast<int64_t>(j)});
    }
  }
  const int64_t lanes = target.vector_bytes / 4;
  for (size_t i = 0; i < s.axes().size(); ++i) {
    for (int64_t multiple : {int64_t{6}, int64_t{8}, lanes, 2 * lanes}) {
      if (s.axes()[i].size > multiple / 2) {
        actions.push_back({ActionKind::kPadTo, static_cast<int>(i), multiple});
      }
    }
  }
  for (size_t i = 0; i < s.reduce_axes().size(); ++i) {
    actions.push_back({ActionKind::kTensorCore, static_cast<int>(i), 0});
  }
  return actions;
}

}  // namespace

std::vector<Action> LegalActions(const Scheduler& scheduler) {
  std::vector<Action> legal;
  for (const Action& action : Proposals(scheduler)) {
    Scheduler trial = scheduler;
    if (!trial.Apply(action).ok()) continue;
    // More copies than twice what the registers hold take long to compile and gain nothing.
    const bool grows = action.kind == ActionKind::kUpcast || action.kind == ActionKind::kUnroll ||
                       action.kind == ActionKind::kGroup;
    const Target& target = scheduler.target();
    const int64_t most = int64_t{1} * target.vector_registers * target.vector_bytes / 2;
    if (!grows || trial.RegisterElements() <= most) legal.push_back(action);
  }
  return legal;
}

}  // namespace quern
