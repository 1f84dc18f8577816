#ifndef QUERN_OPTIMIZER_HEURISTIC_H_
#define QUERN_OPTIMIZER_HEURISTIC_H_

#include <functional>
#include <span>
#include <string_view>

#include "optimizer/decisions.h"
#include "optimizer/scheduler.h"

namespace quern {

/// One step of the default schedule. Each looks at the kernel as the steps before have left it and
/// applies the actions that it finds worthwhile, perhaps none.
struct HeuristicStep {
  std::string_view name;
  std::string_view purpose;
  void (*run)(Scheduler& scheduler, Decisions& decisions);
};

/// The steps, in order: matrix instructions, grouped reductions, register tiles, unrolling, cache
/// tiles, threads. All thresholds come from the target.
std::span<const HeuristicStep> HeuristicSteps();

/// The steps for kernels with temporaries (row_groups.h): registers, threads, lanes, tile.
std::span<const HeuristicStep> GroupHeuristicSteps();

/// Called after each step with the number of actions that it added.
using HeuristicTrace = std::function<void(const HeuristicStep& step, size_t actions)>;

/// Chooses a schedule without measuring anything, by the steps above.
void ApplyHeuristic(Scheduler& scheduler, const HeuristicTrace& trace = {});

/// The same with some decisions taken otherwise. Whether to keep what a step has done is a decision
/// under the step's name.
void ApplyHeuristic(Scheduler& scheduler, Decisions& decisions, const HeuristicTrace& trace = {});

}  // namespace quern

#endif  // QUERN_OPTIMIZER_HEURISTIC_H_
