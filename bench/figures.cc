// Prints each figure that the project promises beside its bar. Exits with 0 whatever they are: on a
// shared machine a figure is something to look at, not a test.
//
//   bench_figures [--fast]     --fast leaves the searches out

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/kernel_list.h"
#include "driver/keep_memory.h"
#include "driver/machine_peak.h"
#include "driver/program_input.h"
#include "driver/program_timer.h"
#include "driver/tensor_memory.h"
#include "optimizer/beam.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "optimizer/work.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "runtime/cpu_target.h"
#include "tensor/prepare.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Print(const std::string& what, double figure, const std::string& unit, const std::string& bar,
           bool reached) {
  std::printf("%-46s %10.3f %-9s %-12s %s\n", what.c_str(), figure, unit.c_str(), bar.c_str(),
              reached ? "reached" : "MISSED");
  std::fflush(stdout);
}

const BenchKernel& Find(const std::string& name) {
  for (const BenchKernel& k : BenchKernels()) {
    if (k.name == name) return k;
  }
  std::fprintf(stderr, "figures: no kernel \"%s\"\n", name.c_str());
  std::exit(2);
}

// In graphs of the size that a candidate's rewriting makes.
void InternedMakes() {
  constexpr int kMakes = 10000;
  std::vector<double> runs;
  for (int run = 0; run < 101; ++run) {
    UOpGraph graph;
    const UOp* one = IndexConst(graph, 1);
    const UOp* u = one;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kMakes; ++i) u = Add(graph, u, one);
    runs.push_back(SecondsSince(start) / kMakes * 1e9);
  }
  const double ns = Median(runs);
  Print("interned make", ns, "ns", "<= 150", ns <= 150);
}

void CompileTimesOfList(const Target& target) {
  std::vector<double> totals;
  std::vector<double> lowering;
  for (const BenchKernel& kernel : BenchKernels()) {
    absl::StatusOr<Program> program = MakeProgram(kernel);
    if (!program.ok()) {
      std::printf("%s: %s\n", kernel.name.c_str(), program.status().ToString().c_str());
      continue;
    }
    for (const KernelInfo& info : program->kernels) {
      std::vector<double> runs;
      for (int i = 0; i < 5; ++i) {
        const Clock::time_point start = Clock::now();
        UOpGraph graph;
        Scheduler scheduler(graph, graph.Import(info.sink), target);
        ApplyHeuristic(scheduler);
        absl::StatusOr<BuiltKernel> built = BuildKernel(graph, scheduler.kernel(), target);
        if (!built.ok()) {
          std::printf("%s: %s\n", kernel.name.c_str(), built.status().ToString().c_str());
          break;
        }
        runs.push_back(SecondsSince(start) * 1e3);
        if (kernel.name == "gemm 1024") lowering.push_back(built->lower_ms);
      }
      if (!runs.empty()) totals.push_back(Median(runs));
    }
  }
  const double median = Median(totals);
  Print("heuristic: AST to machine code, median kernel", median, "ms", "<= 10", median <= 10);
  const double lower = Median(lowering);
  Print("product: schedule to linear form", lower, "ms", "<= 3", lower <= 3);
}

// The median seconds of a prepared program; 0 (with a message) if it cannot be prepared.
double TimeProgram(const BenchKernel& kernel, const PrepareConfig& config,
                   std::vector<KernelReport>* reports) {
  absl::StatusOr<Program> program = MakeProgram(kernel);
  if (!program.ok()) return 0;
  absl::StatusOr<ExecutionPlan> plan = Prepare(*program, config);
  if (!plan.ok()) {
    std::printf("%s: %s\n", kernel.name.c_str(), plan.status().ToString().c_str());
    return 0;
  }
  if (reports != nullptr) *reports = plan->reports();
  ProgramInput input;
  input.program = *program;
  absl::StatusOr<TensorMemory> memory = TensorMemory::Create(input, config.seed);
  absl::StatusOr<TensorMemory> pristine = TensorMemory::Create(input, config.seed);
  if (!memory.ok() || !pristine.ok()) return 0;
  absl::StatusOr<std::vector<std::vector<double>>> times =
      TimePlans({&*plan}, *program, *pristine, *memory, 1.0);
  return times.ok() ? Median((*times)[0]) : 0;
}

double BytesOf(const BenchKernel& kernel) {
  absl::StatusOr<Program> program = MakeProgram(kernel);
  double bytes = 0;
  if (program.ok()) {
    for (const KernelInfo& k : program->kernels) bytes += EstimateWork(k.sink).bytes;
  }
  return bytes;
}

void MemoryBound(const Target& target) {
  for (const char* name : {"a*b+c 16 M", "row sum"}) {
    const BenchKernel& kernel = Find(name);
    PrepareConfig config;
    config.cache = false;
    // Interleaved with the measurement that it is compared with.
    std::vector<double> shares;
    for (int i = 0; i < 3; ++i) {
      const double bandwidth = MeasureBandwidth(target.cores, target.l3_bytes);
      const double seconds = TimeProgram(kernel, config, nullptr);
      if (seconds > 0) shares.push_back(BytesOf(kernel) / seconds / bandwidth);
    }
    const double share = Median(shares);
    Print(Concat(name, ": share of memory bandwidth"), share, "", ">= 0.80", share >= 0.8);
  }
}

void Searches(const Target& target) {
  {
    absl::StatusOr<Program> program = MakeProgram(Find("gemm 256"));
    BeamOptions options;
    options.seconds = 8;
    absl::StatusOr<SearchResult> result = BeamSearch(program->kernels[0].sink, target, options);
    if (result.ok()) {
      const double rate = static_cast<double>(result->candidates) / result->search_seconds;
      Print("search of 256^3: candidates measured", rate, "1/s", ">= 100", rate >= 100);
    } else {
      std::printf("search of 256^3: %s\n", result.status().ToString().c_str());
    }
  }
  PrepareConfig config;
  config.cache = false;
  config.strategy = OptStrategy::Beam{.width = 8, .seconds = 15};
  std::vector<KernelReport> reports;
  const Clock::time_point start = Clock::now();
  const double seconds = TimeProgram(Find("gemm 1024"), config, &reports);
  const double total = SecondsSince(start);
  if (seconds == 0) return;
  const double peak = MeasurePeakFlops(kF32Type, target.cores);
  const double share = 2.0 * 1024 * 1024 * 1024 / seconds / peak;
  Print("BEAM=8 of 1024^3 and its timing", total, "s", "<= 20", total <= 20);
  Print("BEAM=8 of 1024^3: share of FMA peak", share, "", ">= 0.60", share >= 0.6);
  std::printf("  chosen: %s\n", ActionsToString(reports[0].actions).c_str());
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  quern::KeepFreedMemory();
  bool fast = false;
  CLI::App app{"What the project promises about itself, beside what this machine shows"};
  app.add_flag("--fast", fast, "No searches");
  CLI11_PARSE(app, argc, argv);
  const quern::Target target = quern::DetectCpu();
  std::printf("%s, %d threads, LLVM %s\n\n", target.name.c_str(), target.cores,
              quern::LlvmVersion().c_str());
  quern::InternedMakes();
  quern::CompileTimesOfList(target);
  quern::MemoryBound(target);
  if (!fast) quern::Searches(target);
  return 0;
}
