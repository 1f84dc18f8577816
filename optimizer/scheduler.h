#ifndef QUERN_OPTIMIZER_SCHEDULER_H_
#define QUERN_OPTIMIZER_SCHEDULER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/action.h"
#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// One axis of a scheduled kernel.
struct Axis {
  const UOp* range = nullptr;
  int64_t size = 0;
  AxisType type = AxisType::kLoop;
  bool reduce = false;  ///< closed by a REDUCE
};

/// A kernel AST under actions. Every action substitutes one range by two (or changes one), so the
/// state is the AST itself; an action that does not apply says why and changes nothing.
///
///     Scheduler s(graph, kernel, target);
///     absl::Status status = s.Apply({ActionKind::kUpcast, 1, 32});
///
/// On a CPU loops run in the order of their axes; new axes come at these places:
///
/// | action | the new axis |
/// |---|---|
/// | UPCAST | inner part, after all loops, before UNROLL axes |
/// | UNROLL | inner part, last |
/// | LOCAL | inner part, after the last output loop that precedes the reductions |
/// | GROUP | inner part (registers), right before the axis |
/// | GROUPTOP | outer part (blocks), right before the axis |
/// | THREAD | outer part, first |
/// | TC | inner part as large as the instruction's group, last |
class Scheduler {
 public:
  /// `target` must outlive the scheduler.
  Scheduler(UOpGraph& graph, const UOp* kernel, const Target& target);
  Scheduler(UOpGraph& graph, const UOp* kernel, Target&& target) = delete;

  absl::Status Apply(const Action& action);
  /// Applies a list; at the first action that does not apply, returns its error (which names the
  /// action) with those before it applied.
  absl::Status ApplyAll(const std::vector<Action>& actions);

  const UOp* kernel() const { return kernel_; }
  UOpGraph& graph() const { return *graph_; }
  const Target& target() const { return *target_; }
  const std::vector<Action>& actions() const { return actions_; }

  /// All axes, outermost first: the numbering of actions.
  const std::vector<Axis>& axes() const { return axes_; }
  /// Numbers in axes() of the axes that UNROLL, GROUP and GROUPTOP count.
  const std::vector<int>& reduce_axes() const { return reduce_axes_; }
  bool no_locals() const;
  /// Elements, all copies together, of the statement with the most register axes among those that
  /// depend on `range` (nullptr: among all).
  int64_t RegisterElements(const UOp* range = nullptr) const;

 private:
  struct Split {
    bool outer_is_new = false;  // the new axis is the outer part (GROUPTOP, THREAD)
    AxisType type;
    int position = 0;  // the new axis goes before axes()[position]
  };

  void Refresh();
  absl::Status Transform(const Action& action);
  absl::StatusOr<int> FindAxis(const Action& action) const;
  absl::StatusOr<int64_t> FindAmount(const Action& action, const Axis& axis) const;
  absl::Status CheckRegisters(const Axis& axis, int64_t amount, AxisType type) const;
  absl::Status Check(const Action& action, int axis, int64_t amount) const;
  void ApplySplit(int axis, int64_t amount, const Split& split);
  void Renumber(const std::vector<const UOp*>& order, const UOp* replaced, const UOp* value);
  absl::Status ApplySwap(const Action& action);
  absl::Status ApplyPad(const Action& action);
  absl::Status ApplyTensorCore(const Action& action, int axis);

  UOpGraph* graph_;  // pointers, so that schedulers can be assigned
  const UOp* kernel_;
  const Target* target_;
  std::vector<Action> actions_;
  std::vector<Axis> axes_;
  std::vector<int> reduce_axes_;
};

}  // namespace quern

#endif  // QUERN_OPTIMIZER_SCHEDULER_H_
