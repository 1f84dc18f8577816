#include "bench/suite/measure_row.h"

#include <algorithm>
#include <memory>

#include "bench/suite/interleave.h"
#include "bench/suite/reference.h"
#include "driver/machine_peak.h"
#include "driver/program_input.h"
#include "driver/program_timer.h"
#include "driver/tensor_memory.h"
#include "tensor/prepare.h"

namespace quern {
namespace {

// The plan's call with its arguments in place. Errors are what CheckOutput sees: poison.
std::function<void()> CallOf(const std::shared_ptr<ExecutionPlan>& plan, const Program& program,
                             const TensorMemory& memory) {
  std::vector<void*> pointers;
  for (const TensorInfo& wanted : plan->arguments()) {
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      if (program.tensors[i].slot == wanted.slot) {
        pointers.push_back(memory.data(static_cast<int64_t>(i)));
      }
    }
  }
  if (const KernelFunction function = plan->raw_function()) {
    return [plan, pointers, function] { function(pointers.data(), nullptr, 0); };
  }
  return [plan, pointers] { plan->Run(pointers).IgnoreError(); };
}

absl::StatusOr<std::function<void()>> BindQuern(const Program& program, const TensorMemory& memory,
                                                bool tuned, int threads) {
  absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  PrepareConfig::Builder builder(*config);
  builder.Threads(threads).Cache(tuned);
  if (tuned) {
    const OptStrategy::Beam* beam = config->strategy.As<OptStrategy::Beam>();
    builder.Strategy(beam != nullptr ? *beam : OptStrategy::Beam{});
  } else {
    builder.Strategy(OptStrategy::Heuristic{});
  }
  config = builder.Build();
  if (!config.ok()) return config.status();
  absl::StatusOr<ExecutionPlan> plan = Prepare(program, *config);
  if (!plan.ok()) return plan.status();
  return CallOf(std::make_shared<ExecutionPlan>(*std::move(plan)), program, memory);
}

struct Contender {
  Timing timing;
  std::function<void()> call;
  std::function<void()> finish;  ///< after `call`, before the result is read; may be empty
};

// Runs once on poisoned output, so that what is not written is seen, too.
void Check(Contender& contender, const Workload& workload, const Buffers& buffers) {
  PoisonOutput(workload, buffers);
  contender.call();
  if (contender.finish) contender.finish();
  const bool bare = contender.timing.is_peer && contender.timing.footing != Footing::kFused;
  contender.timing.check = CheckOutput(workload, buffers, bare);
}

// Operands of fewer bytes stay in some cache between calls: memory does not bound them.
constexpr double kCachedBytes = 32 << 20;

bool IsBoundByFlops(const Workload& w, const Limits& limits) {
  return w.is_dense() &&
         (w.bytes <= kCachedBytes || w.flops / limits.flops >= w.bytes / limits.bytes);
}

}  // namespace

void Limits::Measure(const Target& target, int threads) {
  flops = std::max(flops, MeasurePeakFlops(kF32Type, threads));
  bytes = std::max(bytes, MeasureBandwidth(threads, target.l3_bytes));
}

absl::StatusOr<Row> MeasureRow(const Workload& workload, int threads, const Target& target,
                               const Limits& best, const std::vector<Peer>& peers,
                               const SuiteOptions& options) {
  absl::StatusOr<Program> program = MakeProgram(workload, workload.always_packed);
  if (!program.ok()) return program.status();
  ProgramInput input;
  input.program = *program;
  absl::StatusOr<TensorMemory> memory = TensorMemory::Create(input, /*seed=*/0);
  if (!memory.ok()) return memory.status();
  Buffers buffers;
  for (size_t i = 0; i < program->tensors.size(); ++i) {
    buffers.Set(program->tensors[i].name, memory->data(static_cast<int64_t>(i)));
  }

  std::vector<Contender> contenders;
  const bool both_ways = !workload.weights.empty() && !workload.always_packed;
  for (bool packed : {false, true}) {
    if (packed && !both_ways) continue;
    const absl::StatusOr<Program> variant =
        packed ? MakeProgram(workload, /*packed=*/true) : *program;
    if (!variant.ok()) return variant.status();
    for (bool tuned : {false, true}) {
      if (tuned && !options.tuned) continue;
      Contender contender;
      contender.timing.name = tuned ? "tuned" : "heuristic";
      contender.timing.footing = packed ? Footing::kPacked : Footing::kPlain;
      absl::StatusOr<std::function<void()>> call = BindQuern(*variant, *memory, tuned, threads);
      if (call.ok()) {
        contender.call = *std::move(call);
        Check(contender, workload, buffers);
      } else {
        contender.timing.check = call.status().ToString();
      }
      contenders.push_back(std::move(contender));
    }
  }
  for (const Peer& peer : peers) {
    if (!peer.found) continue;
    peer.set_threads(threads);
    for (PeerCall& way : peer.bind(workload, buffers, threads)) {
      Contender contender;
      contender.timing.name = std::move(way.name);
      contender.timing.is_peer = true;
      contender.timing.footing = way.footing;
      contender.call = std::move(way.call);
      contender.finish = std::move(way.finish);
      Check(contender, workload, buffers);
      contenders.push_back(std::move(contender));
    }
  }

  Row row{.workload = workload,
          .threads = threads,
          .timings = {},
          .kernels = static_cast<int>(program->kernels.size()),
          .bound_by_flops = IsBoundByFlops(workload, best)};
  row.best_limit = row.bound_by_flops ? best.flops : best.bytes;
  const std::vector<LimitRun> limits = row.bound_by_flops
                                           ? std::vector{MultiplyAddRun(kF32Type, threads)}
                                           : StreamRuns(threads, target.l3_bytes);
  std::vector<std::function<void()>> calls;
  for (const LimitRun& limit : limits) calls.push_back(limit.call);
  for (const Contender& c : contenders) {
    if (c.timing.ok()) calls.push_back(c.call);
  }
  const std::vector<std::vector<double>> samples = TimeInterleaved(calls, threads, options.seconds);
  size_t timed = 0;
  for (const LimitRun& limit : limits) {
    row.limit = std::max(row.limit, limit.amount / Quantile(samples[timed++], 0.5));
  }
  for (Contender& c : contenders) {
    if (c.timing.ok()) {
      c.timing.median = Quantile(samples[timed], 0.5);
      c.timing.low = Quantile(samples[timed], 0.25);
      c.timing.high = Quantile(samples[timed], 0.75);
      ++timed;
    }
    row.timings.push_back(std::move(c.timing));
  }
  return row;
}

}  // namespace quern
