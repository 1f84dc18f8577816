#ifndef QUERN_BENCH_SUITE_MEASURE_ROW_H_
#define QUERN_BENCH_SUITE_MEASURE_ROW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/suite/peer.h"
#include "bench/suite/workload.h"
#include "rewrite/target.h"

namespace quern {

struct SuiteOptions {
  bool tuned = false;
  double seconds = 0.4;  ///< of samples for each candidate
};

/// Of the machine, as this process measured them; 0 if it did not.
struct Limits {
  double flops = 0;  ///< f32 multiply-adds, counted as two
  double bytes = 0;

  /// Raises them to what they are now, if that is more.
  void Measure(const Target& target, int threads);
};

/// One candidate of a row: Quern's "heuristic" or "tuned", on plain operands or with the weights
/// packed ahead, or a peer.
struct Timing {
  std::string name;
  bool is_peer = false;
  Footing footing = Footing::kPlain;
  std::string check;  ///< "ok", or what is wrong: then there is no time
  double median = 0;
  double low = 0, high = 0;  ///< the quarters of the samples lie below and above

  bool ok() const { return check == "ok"; }
};

struct Row {
  Workload workload;
  int threads = 1;
  std::vector<Timing> timings;  ///< Quern's first
  int kernels = 0;              ///< into which Quern divided the program
  bool bound_by_flops = true;   ///< else by memory
  double limit = 0;             ///< of those: the median rate in turns with the candidates
  double best_limit = 0;        ///< the highest rate of the process
};

/// Prepares, checks and times Quern, all peers that have the operation, and the limit of the
/// machine that `best`, the highest rates so far, say is the one that matters.
absl::StatusOr<Row> MeasureRow(const Workload& workload, int threads, const Target& target,
                               const Limits& best, const std::vector<Peer>& peers,
                               const SuiteOptions& options);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_MEASURE_ROW_H_
