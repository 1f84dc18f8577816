#include "driver/measure_program.h"

#include <algorithm>
#include <utility>

#include "driver/machine_peak.h"
#include "driver/program_timer.h"
#include "driver/search_progress.h"
#include "driver/tensor_memory.h"
#include "optimizer/work.h"
#include "rewrite/concat.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

// Unoptimised loops do about a billion operations a second; more than this is not waited for unless
// the check needs it.
constexpr double kMaxNooptFlops = 8e9;
// A check does not wait for it, either, if it takes n² steps where the kernel takes n; the
// interpreter's samples remain.
constexpr double kMaxCheckedGrowth = 4;

absl::StatusOr<ExecutionPlan> PrepareWith(const Program& program, const PrepareConfig& config,
                                          OptStrategy strategy) {
  absl::StatusOr<PrepareConfig> other =
      PrepareConfig::Builder(config).Strategy(std::move(strategy)).Build();
  if (!other.ok()) return other.status();
  return Prepare(program, *other);
}

bool UsesDoubles(const Program& program) {
  return std::any_of(program.tensors.begin(), program.tensors.end(),
                     [](const TensorInfo& t) { return t.dtype == kF64Type; });
}

// With a reduction over all that comes before as it is written.
double UnoptimisedFlops(const Program& program) {
  double flops = 0;
  for (const KernelInfo& kernel : program.kernels) flops += EstimateWork(kernel.sink).flops;
  return flops;
}

void DescribeWork(const Program& program, ProgramReport& report) {
  for (const KernelInfo& kernel : program.kernels) {
    UOpGraph graph;
    const WorkEstimate work = EstimateWork(RecognizeScans(graph, graph.Import(kernel.sink)));
    report.flops += work.flops;
    report.bytes += work.bytes;
    report.kernel_names.push_back(kernel.name);
  }
}

std::optional<double> Speedup(const std::vector<double>& other, const std::vector<double>& own) {
  const double seconds = Quantile(own, 0.25);
  if (seconds <= 0) return std::nullopt;
  return Quantile(other, 0.25) / seconds;
}

// The best that was seen so far in this process: other load can only lower a measurement.
void MeasureMachine(DType dtype, const Target& target, ProgramReport& report) {
  static double peak[2] = {0, 0};
  static double bandwidth = 0;
  double& best = peak[dtype == kF64Type ? 1 : 0];
  best = std::max(best, MeasurePeakFlops(dtype, target.cores));
  if (bandwidth == 0) bandwidth = MeasureBandwidth(target.cores, target.l3_bytes);
  report.peak_flops = best;
  report.bandwidth = bandwidth;
}

absl::Status CheckAgainst(ExecutionPlan* noopt, const Program& program, const ProgramInput& input,
                          const MeasureProgramOptions& options, const TensorMemory& pristine,
                          const TensorMemory& got, ProgramReport& report) {
  OutputCheck check;
  if (noopt != nullptr) {
    absl::StatusOr<TensorMemory> want = TensorMemory::Create(input, options.seed);
    if (!want.ok()) return want.status();
    if (absl::Status s = RunOnce(*noopt, program, pristine, *want); !s.ok()) return s;
    CompareOutputs(program, *want, got, check);
  }
  if (absl::Status s = CompareWithInterpreter(program, pristine, got, check); !s.ok()) return s;
  report.check = check;
  return absl::OkStatus();
}

}  // namespace

std::string ProgramReport::Actions() const {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    Append(text, i == 0 ? "" : "; ", ActionsToString(kernels[i].actions));
  }
  return text;
}

bool ProgramReport::Cached() const {
  return std::all_of(kernels.begin(), kernels.end(),
                     [](const KernelReport& k) { return k.code_cached && !k.search.has_value(); });
}

double ProgramReport::CompileMs() const {
  double ms = 0;
  for (const KernelReport& k : kernels) ms += k.compile_ms;
  return ms;
}

SearchResult ProgramReport::Search() const {
  SearchResult all;
  for (const KernelReport& k : kernels) {
    if (!k.search.has_value()) continue;
    all.search_seconds += k.search->search_seconds;
    all.candidates += k.search->candidates;
    all.failed += k.search->failed;
    all.rounds = std::max(all.rounds, k.search->rounds);
  }
  return all;
}

absl::StatusOr<ProgramReport> MeasureProgram(ProgramInput input, const PrepareConfig& config,
                                             const MeasureProgramOptions& options) {
  // Intermediates are given memory here, where a check can look at them.
  for (TensorInfo& t : input.program.tensors) {
    if (t.role == TensorRole::kIntermediate) t.role = TensorRole::kOutput;
  }
  const Program& program = input.program;
  ProgramReport report;
  report.source = input.source;
  report.strategy = config.strategy.Describe();
  DescribeWork(program, report);

  absl::StatusOr<ExecutionPlan> plan = Prepare(program, config, TerminalHooks());
  if (!plan.ok()) return plan.status();
  report.kernels = plan->reports();

  absl::StatusOr<TensorMemory> pristine = TensorMemory::Create(input, options.seed);
  if (!pristine.ok()) return pristine.status();
  absl::StatusOr<TensorMemory> memory = TensorMemory::Create(input, options.seed);
  if (!memory.ok()) return memory.status();
  if (absl::Status s = RunOnce(*plan, program, *pristine, *memory); !s.ok()) return s;
  if (absl::Status s = memory->WriteOutputs(input); !s.ok()) return s;

  std::vector<ExecutionPlan*> plans = {&*plan};
  std::optional<ExecutionPlan> heuristic, noopt;
  const double noopt_flops = UnoptimisedFlops(program);
  const bool soon = noopt_flops <= kMaxNooptFlops;
  if ((options.check && (soon || noopt_flops <= kMaxCheckedGrowth * report.flops)) ||
      (options.compare && soon)) {
    absl::StatusOr<ExecutionPlan> other = PrepareWith(program, config, OptStrategy::NoOpt{});
    if (!other.ok()) return other.status();
    noopt = *std::move(other);
  }
  if (options.check) {
    const absl::Status s = CheckAgainst(noopt ? &*noopt : nullptr, program, input, options,
                                        *pristine, *memory, report);
    if (!s.ok()) return s;
  }
  if (options.compare) {
    absl::StatusOr<ExecutionPlan> other = PrepareWith(program, config, OptStrategy::Heuristic{});
    if (!other.ok()) return other.status();
    heuristic = *std::move(other);
    plans.push_back(&*heuristic);
    if (noopt) plans.push_back(&*noopt);
  }
  const auto samples = TimePlans(plans, program, *pristine, *memory, options.seconds);
  if (!samples.ok()) return samples.status();
  report.samples = static_cast<int>((*samples)[0].size());
  report.seconds_median = Quantile((*samples)[0], 0.5);
  report.seconds_low = Quantile((*samples)[0], 0.25);
  report.seconds_high = Quantile((*samples)[0], 0.75);
  if (options.compare) {
    report.heuristic_seconds = Quantile((*samples)[1], 0.5);
    report.speedup_vs_heuristic = Speedup((*samples)[1], (*samples)[0]);
  }
  if (options.compare && noopt) {
    report.noopt_seconds = Quantile((*samples)[2], 0.5);
    report.speedup_vs_noopt = Speedup((*samples)[2], (*samples)[0]);
  }
  if (options.compare) {
    MeasureMachine(UsesDoubles(program) ? kF64Type : kF32Type, plan->target(), report);
  }
  return report;
}

Json ReportAsJson(const ProgramReport& r) {
  const auto ratio = [](double a, double b) { return b > 0 ? Json(a / b) : Json(); };
  const auto optional = [](const std::optional<double>& x) { return x ? Json(*x) : Json(); };
  const double rate = r.seconds_median > 0 ? r.flops / r.seconds_median : 0;
  const SearchResult search = r.Search();
  Json report = {
      {"source", r.source},
      {"strategy", r.strategy},
      {"actions", r.Actions()},
      {"seconds_median", r.seconds_median},
      {"seconds_spread", r.seconds_high - r.seconds_low},
      {"samples", r.samples},
      {"gflops", rate * 1e-9},
      {"peak_fraction", ratio(rate, r.peak_flops)},
      {"bandwidth_fraction",
       r.seconds_median > 0 ? ratio(r.bytes / r.seconds_median, r.bandwidth) : Json()},
      {"speedup_vs_heuristic", optional(r.speedup_vs_heuristic)},
      {"speedup_vs_noopt", optional(r.speedup_vs_noopt)},
      {"cached", r.Cached()},
      {"search",
       {{"seconds", search.search_seconds},
        {"candidates", search.candidates},
        {"failed", search.failed}}},
      {"compile_ms", r.CompileMs()},
      {"check", Json()},
      {"kernels", Json::array()},
  };
  if (r.check) {
    report["check"] = {{"max_abs_error", r.check->max_abs_error},
                       {"max_rel_error", r.check->max_rel_error},
                       {"ok", r.check->ok}};
  }
  for (size_t i = 0; i < r.kernels.size(); ++i) {
    const KernelReport& k = r.kernels[i];
    report["kernels"].push_back({{"name", r.kernel_names[i]},
                                 {"actions", ActionsToString(k.actions)},
                                 {"cached", k.cached},
                                 {"code_cached", k.code_cached},
                                 {"compile_ms", k.compile_ms},
                                 {"notes", k.notes}});
  }
  return report;
}

}  // namespace quern
