// Several schedules of one program, in turns with the machine's multiply-adds (or, with --memory,
// its streams), so that a small difference between them is seen on a machine whose clock moves:
//
//     bench_schedules 'C[i,j] = sum[k](A[i,k]*B[k,j])' --size i=512,j=512,k=512
//         --apply heuristic --apply 'UPCAST(1,32) UPCAST(0,12)' --threads 2
//
// The first is what the others are compared with. Exits with 1 if one cannot be made.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/suite/interleave.h"
#include "driver/machine_peak.h"
#include "driver/program_input.h"
#include "driver/program_timer.h"
#include "driver/tensor_memory.h"
#include "optimizer/environment.h"
#include "optimizer/work.h"
#include "runtime/cpu_target.h"
#include "tensor/prepare.h"

namespace quern {
namespace {

struct CommandLine {
  ProgramOptions program;
  std::vector<std::string> schedules;
  int threads = 1;
  double seconds = 1;
  bool memory = false;
};

absl::StatusOr<OptStrategy> StrategyOf(const std::string& schedule) {
  if (schedule == "heuristic") return OptStrategy(OptStrategy::Heuristic{});
  absl::StatusOr<std::vector<Action>> actions = ParseActions(schedule);
  if (!actions.ok()) return actions.status();
  return OptStrategy(OptStrategy::Explicit{*std::move(actions)});
}

absl::StatusOr<std::shared_ptr<ExecutionPlan>> PlanOf(const Program& program,
                                                      const std::string& schedule, int threads) {
  absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  absl::StatusOr<OptStrategy> strategy = StrategyOf(schedule);
  if (!strategy.ok()) return strategy.status();
  PrepareConfig::Builder builder(*config);
  config = builder.Threads(threads).Cache(false).Strategy(*std::move(strategy)).Build();
  if (!config.ok()) return config.status();
  absl::StatusOr<ExecutionPlan> plan = Prepare(program, *config);
  if (!plan.ok()) return plan.status();
  return std::make_shared<ExecutionPlan>(*std::move(plan));
}

absl::Status Compare(const CommandLine& command) {
  absl::StatusOr<ProgramInput> input = LoadProgram(command.program);
  if (!input.ok()) return input.status();
  absl::StatusOr<TensorMemory> memory = TensorMemory::Create(*input, /*seed=*/0);
  if (!memory.ok()) return memory.status();
  const Target target = DetectCpu();
  const std::vector<LimitRun> limits = command.memory
                                           ? StreamRuns(command.threads, target.l3_bytes)
                                           : std::vector{MultiplyAddRun(kF32Type, command.threads)};
  std::vector<std::function<void()>> calls;
  for (const LimitRun& limit : limits) calls.push_back(limit.call);
  std::vector<std::shared_ptr<ExecutionPlan>> plans;
  for (const std::string& schedule : command.schedules) {
    absl::StatusOr<std::shared_ptr<ExecutionPlan>> made =
        PlanOf(input->program, schedule, command.threads);
    if (!made.ok()) return made.status();
    const std::shared_ptr<ExecutionPlan> plan = *std::move(made);
    std::vector<void*> pointers;
    for (const TensorInfo& wanted : plan->arguments()) {
      for (size_t i = 0; i < input->program.tensors.size(); ++i) {
        if (input->program.tensors[i].slot == wanted.slot) pointers.push_back(memory->data(i));
      }
    }
    if (absl::Status s = plan->Run(pointers); !s.ok()) return s;
    plans.push_back(plan);
    calls.push_back([plan, pointers] { plan->Run(pointers).IgnoreError(); });
  }
  double work = 0;
  for (const KernelInfo& kernel : input->program.kernels) {
    const WorkEstimate estimate = EstimateWork(kernel.sink);
    work += command.memory ? estimate.bytes : estimate.flops;
  }
  const std::vector<std::vector<double>> samples =
      TimeInterleaved(calls, command.threads, command.seconds);
  double limit = 0;
  for (size_t i = 0; i < limits.size(); ++i) {
    limit = std::max(limit, limits[i].amount / Quantile(samples[i], 0.5));
  }
  std::printf("%s %.1f G/s on %d threads\n", command.memory ? "bytes" : "multiply-adds",
              limit * 1e-9, command.threads);
  const double first = Quantile(samples[limits.size()], 0.5);
  for (size_t i = 0; i < command.schedules.size(); ++i) {
    const double median = Quantile(samples[limits.size() + i], 0.5);
    std::printf("%10.4f ms  share %.3f  x%.3f  compiled in %.0f ms  %s\n", median * 1e3,
                work / median / limit, first / median, plans[i]->reports()[0].compile_ms,
                command.schedules[i].c_str());
    for (const KernelReport& kernel : plans[i]->reports()) {
      if (command.schedules[i] != "heuristic") continue;
      std::printf("%s  %s\n", std::string(26, ' ').c_str(),
                  ActionsToString(kernel.actions).c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  CLI::App app{"Several schedules of one program, in turns"};
  quern::CommandLine command;
  quern::AddProgramOptions(app, command.program);
  app.add_option("--apply", command.schedules, "A list of actions, or `heuristic`; repeated")
      ->required();
  app.add_option("--threads", command.threads)->check(CLI::PositiveNumber);
  app.add_option("--seconds", command.seconds, "Of samples for each")->check(CLI::PositiveNumber);
  app.add_flag("--memory", command.memory, "Shares of the memory bandwidth");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = quern::Compare(command);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_schedules: %s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 1;
}
