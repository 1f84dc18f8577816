#ifndef QUERN_OPTIMIZER_BEAM_H_
#define QUERN_OPTIMIZER_BEAM_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/measurer.h"
#include "optimizer/tolerance.h"

namespace quern {

struct BeamOptions {
  int width = 8;
  double seconds = 15;  ///< time limit; kept to within one candidate
  int max_rounds = 1000;
  MeasureOptions measure;
};

/// How far a search is; for a line of progress.
struct SearchProgress {
  int round = 0;
  int64_t candidates = 0;  ///< measured
  double best_seconds = 0;
  double elapsed_seconds = 0;
  double limit_seconds = 0;
};

struct SearchHooks {
  std::function<void(const SearchProgress&)> progress;
  std::function<bool()> cancelled;               ///< Ctrl-C: the best so far is returned
  std::function<void(Candidate&)> inject_fault;  ///< for tests
};

struct SearchResult {
  std::vector<Action> actions;
  double seconds = 0;            ///< median of the winner among the finalists
  double heuristic_seconds = 0;  ///< of the heuristic's schedule in the same rounds
  double search_seconds = 0;
  int64_t candidates = 0;  ///< measured
  int64_t failed = 0;      ///< refused by a limit, broken, crashed or hung
  int rounds = 0;
  double max_abs_error = 0;  ///< of the winner against the unoptimised kernel
  double max_rel_error = 0;
};

/// Beam search from the unoptimised and the heuristic's schedule. Each round takes the `width`
/// fastest schedules that were not taken before, and measures what becomes of each by one more
/// action, or by one decision of the heuristic taken otherwise (optimizer/decisions.h). It ends
/// when the time is over, or when half of the time it took, and a fifth of its limit, have brought
/// nothing. The finalists are timed again, interleaved, and the winner is compared with the
/// unoptimised kernel's numbers; it is never slower than the heuristic's schedule, which is one of
/// the finalists. Errors: no worker process, or no schedule that runs and gives right numbers.
absl::StatusOr<SearchResult> BeamSearch(const UOp* kernel, const Target& target,
                                        const BeamOptions& options, const SearchHooks& hooks = {});

}  // namespace quern

#endif  // QUERN_OPTIMIZER_BEAM_H_
