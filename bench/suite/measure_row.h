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

/// The highest that this process has measured.
struct Limits {
  double flops = 0;  ///< f32 multiply-adds, counted as two
  double bytes = 0;

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
};

/// Prepares, checks and times Quern and all peers that have the operation.
absl::StatusOr<Row> MeasureRow(const Workload& workload, int threads,
                               const std::vector<Peer>& peers, const SuiteOptions& options);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_MEASURE_ROW_H_
