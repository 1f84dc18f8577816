#ifndef QUERN_OPTIMIZER_MEASURER_H_
#define QUERN_OPTIMIZER_MEASURER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/action.h"
#include "optimizer/build_kernel.h"
#include "rewrite/graph.h"
#include "runtime/timing_client.h"

namespace quern {

/// A schedule to be measured. The kernel belongs to `graph`, which nobody else changes.
struct Candidate {
  std::vector<Action> actions;
  std::shared_ptr<UOpGraph> graph;
  const UOp* kernel = nullptr;
  /// For tests: "compile-error", "compile-hang", "segv", "exit", "hang", "refuse".
  std::string fault;
  /// Exempt from the limits of MeasureOptions::build, as what a search begins with is.
  bool unlimited = false;
};

/// What came of a candidate.
struct Measurement {
  absl::Status status;   ///< why there is no time
  int64_t id = -1;       ///< of the measurer, for later calls
  double seconds = 0;    ///< median of the samples so far
  bool aborted = false;  ///< so slow that it ran only once
  BuiltKernel built;
};

struct MeasureOptions {
  BuildOptions build;
  uint64_t seed = 0;
  int threads = 0;              ///< of the device
  double first_seconds = 120;   ///< deadline of a kernel when none has been timed yet
  double compile_seconds = 10;  ///< deadline of one batch of compiles
  double abort_factor = 2;      ///< a first run slower than this times the best is the last
  double min_sample_seconds = 20e-6;
};

/// Compiles candidates in parallel, then times them one at a time in a process of their own. Not
/// for use by several threads at once.
class Measurer {
 public:
  /// For candidates of one kernel, whose buffers they share.
  static absl::StatusOr<std::unique_ptr<Measurer>> Create(const UOp* kernel, const Target& target,
                                                          const MeasureOptions& options);
  ~Measurer();

  /// One measurement a candidate, in order; of equal code the first is measured and the others get
  /// kAlreadyExists. `best_seconds` (0: unknown) says what is too slow. Stops early, with
  /// kDeadlineExceeded for the rest, once `stop` says so.
  std::vector<Measurement> Measure(const std::vector<Candidate>& candidates, double best_seconds,
                                   const std::function<bool()>& stop);

  /// Compiles a kernel without timing it; its id. No build limits apply.
  absl::StatusOr<int64_t> Prepare(const Candidate& candidate);

  /// Times measured kernels against one another: interleaved, in random order. Result by id and
  /// round.
  absl::StatusOr<std::vector<std::vector<double>>> TimeInterleaved(const std::vector<int64_t>& ids,
                                                                   int64_t rounds);

  struct Comparison {
    double max_abs_error = 0;
    double max_rel_error = 0;
    bool equal = false;
  };
  /// Runs a kernel on poisoned outputs and compares it with a reference (an id, too).
  absl::StatusOr<Comparison> Compare(int64_t reference, int64_t id, double tolerance);

  /// Lets kernels through whose lowered form has up to so many nodes, if that is more than before.
  void AllowNodes(int64_t nodes);

  /// Gives up the code of all kernels but these.
  void KeepOnly(const std::vector<int64_t>& ids);

  int64_t compiled() const { return compiled_; }
  int64_t timed() const { return timed_; }

 private:
  struct Kept;
  struct Parallelism;
  Measurer(const Target& target, const MeasureOptions& options);

  std::vector<absl::StatusOr<BuiltKernel>> CompileAll(const std::vector<Candidate>& candidates,
                                                      const std::function<bool()>& stop);
  absl::Status EnsureLoaded(const std::vector<int64_t>& ids);
  absl::StatusOr<TimingReply> AskLoaded(TimingRequest request, double deadline_seconds);

  Target target_;
  MeasureOptions options_;
  std::unique_ptr<Parallelism> parallelism_;
  std::unique_ptr<TimingClient> client_;
  std::vector<Kept> kept_;
  int64_t next_id_ = 0;
  int64_t compiled_ = 0;
  int64_t timed_ = 0;
  std::vector<Hash128> seen_code_;
};

/// Middle value; of an even number the mean of the two in the middle. 0 for none.
double Median(std::vector<double> values);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_MEASURER_H_
