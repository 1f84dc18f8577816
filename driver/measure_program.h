#ifndef QUERN_DRIVER_MEASURE_PROGRAM_H_
#define QUERN_DRIVER_MEASURE_PROGRAM_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/check_outputs.h"
#include "driver/program_input.h"
#include "driver/report.h"
#include "optimizer/configuration.h"
#include "tensor/prepare.h"

namespace quern {

struct MeasureProgramOptions {
  uint64_t seed = 0;
  bool check = false;
  bool compare = true;   ///< time the heuristic's schedule and NOOPT, measure the machine
  double seconds = 0.5;  ///< about how long each of them is timed
};

/// What `quern run` tells about a program. Times are of the whole program, all kernels.
struct ProgramReport {
  std::string source;
  std::string strategy;
  std::vector<KernelReport> kernels;
  std::vector<std::string> kernel_names;
  double flops = 0;
  double bytes = 0;  ///< that must move: every buffer of every kernel once
  double seconds_median = 0;
  double seconds_low = 0;   ///< lower quartile
  double seconds_high = 0;  ///< upper quartile
  int samples = 0;
  double peak_flops = 0;                    ///< of the machine; 0 if it was not measured
  double bandwidth = 0;                     ///< of the machine, bytes per second
  std::optional<double> heuristic_seconds;  ///< medians
  std::optional<double> noopt_seconds;
  /// How many times as long the others take. Lower quartiles are compared, because other load on
  /// the machine only ever adds time.
  std::optional<double> speedup_vs_heuristic;
  std::optional<double> speedup_vs_noopt;
  std::optional<OutputCheck> check;

  std::string Actions() const;  ///< of all kernels, joined by "; "
  bool Cached() const;          ///< nothing was searched or compiled
  double CompileMs() const;
  SearchResult Search() const;  ///< sums over the kernels
};

/// Prepares a program, runs it once (writing the outputs that were asked for), checks it, and times
/// it against the heuristic and NOOPT, interleaved.
absl::StatusOr<ProgramReport> MeasureProgram(ProgramInput input, const PrepareConfig& config,
                                             const MeasureProgramOptions& options);

/// The report as one object: `actions`, `seconds_median`, … as the manual says.
Json ReportAsJson(const ProgramReport& report);

}  // namespace quern

#endif  // QUERN_DRIVER_MEASURE_PROGRAM_H_
