#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "driver/command.h"
#include "driver/measure_program.h"
#include "driver/program_input.h"
#include "driver/report.h"
#include "driver/search_progress.h"
#include "optimizer/environment.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

struct RunOptions {
  ProgramOptions program;
  std::optional<std::string> apply;
  std::optional<int> threads;
  std::optional<uint64_t> seed;
  bool check = false;
  bool compare = true;
  std::string json;
};

// The environment, changed by what the command line says.
absl::StatusOr<PrepareConfig> ConfigFor(const RunOptions& options) {
  absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config;
  PrepareConfig::Builder builder(*config);
  if (options.apply) {
    absl::StatusOr<std::vector<Action>> actions = ParseActions(*options.apply);
    if (!actions.ok()) return actions.status();
    builder.Strategy(OptStrategy::Explicit{*std::move(actions)});
  }
  if (options.threads) builder.Threads(*options.threads);
  if (options.seed) builder.Seed(*options.seed);
  return builder.Build();
}

// "  rate        176.2 GFLOP/s, 85 % of the measured FMA peak of 206.3"
void PrintRate(const char* label, const char* unit, double rate, const char* limit_name,
               double limit) {
  std::printf("  %-11s %.1f %s", label, rate * 1e-9, unit);
  if (limit > 0) {
    std::printf(", %.0f %% of the measured %s of %.1f", 100 * rate / limit, limit_name,
                limit * 1e-9);
  }
  std::printf("\n");
}

void PrintKernel(const std::string& name, const KernelReport& k) {
  std::printf("%s: %s\n", name.c_str(),
              k.actions.empty() ? "no actions" : ActionsToString(k.actions).c_str());
  if (k.search) {
    std::printf("  search      %.2f s, %lld candidates in %d rounds, %lld failed\n",
                k.search->search_seconds, static_cast<long long>(k.search->candidates),
                k.search->rounds, static_cast<long long>(k.search->failed));
  } else if (k.cached) {
    std::printf("  search      none: the schedule is cached\n");
  }
  if (k.code_cached) {
    std::printf("  compile     none: the code is cached\n");
  } else {
    std::printf("  compile     %.1f ms\n", k.compile_ms);
  }
}

void PrintOther(const char* name, const std::optional<double>& seconds,
                const std::optional<double>& speedup) {
  if (!seconds) return;
  std::printf("  %-11s %s", name, SecondsText(*seconds).c_str());
  if (speedup) std::printf(", %.2f times as long (lower quartiles compared)", *speedup);
  std::printf("\n");
}

void PrintReport(const ProgramReport& r) {
  for (size_t i = 0; i < r.kernels.size(); ++i) PrintKernel(r.kernel_names[i], r.kernels[i]);
  if (r.kernels.size() > 1) std::printf("all %zu kernels\n", r.kernels.size());
  std::printf("  time        %s (median of %d, half of them from %s to %s)\n",
              SecondsText(r.seconds_median).c_str(), r.samples, SecondsText(r.seconds_low).c_str(),
              SecondsText(r.seconds_high).c_str());
  if (r.seconds_median > 0) {
    const double rate = r.flops / r.seconds_median;
    const double traffic = r.bytes / r.seconds_median;
    PrintRate("rate", "GFLOP/s", rate, "FMA peak", r.peak_flops);
    PrintRate("memory", "GB/s", traffic, "bandwidth", r.bandwidth);
  }
  PrintOther("heuristic", r.heuristic_seconds, r.speedup_vs_heuristic);
  PrintOther("NOOPT", r.noopt_seconds, r.speedup_vs_noopt);
  if (r.check) {
    std::printf("  check       %s: largest error %.3g, relative %.3g; %lld elements interpreted\n",
                r.check->ok ? "ok" : "FAILED", r.check->max_abs_error, r.check->max_rel_error,
                static_cast<long long>(r.check->interpreted));
  }
}

absl::Status RunProgram(const RunOptions& options) {
  const absl::StatusOr<PrepareConfig> config = ConfigFor(options);
  if (!config.ok()) return config.status();
  PrintNotes(config->notes);
  absl::StatusOr<ProgramInput> input = LoadProgram(options.program);
  if (!input.ok()) return input.status();
  MeasureProgramOptions measure;
  measure.seed = config->seed;
  measure.check = options.check;
  measure.compare = options.compare;
  const absl::StatusOr<ProgramReport> report = MeasureProgram(*std::move(input), *config, measure);
  if (!report.ok()) return report.status();
  for (const KernelReport& k : report->kernels) PrintNotes(k.notes);
  if (Interrupted()) PrintNotes({"the search was interrupted; this is the best so far"});
  if (options.json != "-") PrintReport(*report);
  if (!options.json.empty()) {
    if (absl::Status s = WriteJson(ReportAsJson(*report), options.json); !s.ok()) return s;
  }
  if (report->check && !report->check->ok) {
    return absl::DataLossError(Concat("the check failed: ", report->check->worst));
  }
  return absl::OkStatus();
}

}  // namespace

void AddRunCommand(CLI::App& app, CommandAction& action) {
  CLI::App* run = app.add_subcommand("run", "Tune, run, time and check a formula");
  const auto options = std::make_shared<RunOptions>();
  AddProgramOptions(*run, options->program);
  run->add_option("--apply", options->apply,
                  "Use these actions and no search: 'UPCAST(1,32) THREAD(0,2)'")
      ->type_name("ACTIONS");
  run->add_option("--threads", options->threads, "Threads a kernel may use (0: all cores)")
      ->type_name("N");
  run->add_option("--seed", options->seed, "Seed of random inputs")->type_name("N");
  run->add_flag("--check", options->check,
                "Compare the outputs with the unoptimised kernel and with the interpreter");
  run->add_flag("!--no-compare", options->compare,
                "Do not time the heuristic and NOOPT, nor measure the machine");
  run->add_option("--json", options->json, "Write a report as JSON to FILE, or - for the output")
      ->type_name("FILE");
  run->footer(
      "BEAM=8 in front of the command searches with a beam of 8; NOOPT=1 optimises nothing.");
  run->callback([&action, options] { action = [options] { return RunProgram(*options); }; });
}

}  // namespace quern
