#ifndef QUERN_OPTIMIZER_ACTION_H_
#define QUERN_OPTIMIZER_ACTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

/// The ten actions. What each does to a kernel is written down in docs/actions.md.
enum class ActionKind : uint8_t {
  kUpcast,
  kUnroll,
  kLocal,
  kGroup,
  kGroupTop,
  kThread,
  kSwap,
  kPadTo,
  kNoLocals,
  kTensorCore,
};
inline constexpr int kActionKindCount = 10;

/// One action. UNROLL, GROUP, GROUPTOP and TC count the reduce axes of a kernel, all others count
/// all axes; both from 0, outermost first. `amount` is the size of the new inner (or, for THREAD
/// and GROUPTOP, outer) axis, 0 for the whole axis; for SWAP it is the second axis, for PADTO the
/// number to make the size a multiple of. NOLOCALS has neither.
struct Action {
  ActionKind kind = ActionKind::kUpcast;
  int axis = 0;
  int64_t amount = 0;
  bool operator==(const Action&) const = default;
};

std::string_view ActionName(ActionKind kind);

/// "UPCAST(0,8)", "NOLOCALS", "TC(0)".
std::string ActionToString(const Action& action);
/// A list as "UPCAST(0,8) LOCAL(1,256)"; "" for none.
std::string ActionsToString(const std::vector<Action>& actions);

/// Reads such a list; spaces and commas may stand between actions. Errors name the place.
absl::StatusOr<std::vector<Action>> ParseActions(std::string_view text);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_ACTION_H_
