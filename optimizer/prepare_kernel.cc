#include "optimizer/prepare_kernel.h"

#include <cstring>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/concat.h"
#include "rewrite/merge_loops.h"
#include "rewrite/scan.h"
#include "rewrite/simplify.h"
#include "rewrite/verify.h"
#include "runtime/cpu_target.h"

namespace quern {
namespace {

// Everything besides the schedule that changes machine code.
std::string CodeFlags(const PrepareConfig& config) {
  return Concat("reassoc=", config.float_reassoc ? 1 : 0,
                " rewrites=", config.rewrite_limit.value_or(-1));
}

BuildOptions MakeBuildOptions(const PrepareConfig& config) {
  BuildOptions options;
  options.passes.verify = config.verify;
  options.passes.simplify.float_reassoc = config.float_reassoc;
  options.passes.simplify.rewrite_limit = config.rewrite_limit.value_or(-1);
  options.compile.verify = config.verify;
  return options;
}

TuningKey MakeKey(const UOp* kernel, const PrepareContext& context) {
  TuningKey key;
  key.ast = kernel->hash;
  key.device = TargetFingerprint(context.device.target());
  key.strategy = Concat(context.config.strategy.Describe(), " ", CodeFlags(context.config));
  key.llvm_version = LlvmVersion();
  return key;
}

// The schedule of an earlier search, if there is one that still applies.
bool FromDatabase(const TuningKey& key, const PrepareContext& context, Scheduler& scheduler,
                  KernelReport& report) {
  if (context.database == nullptr) return false;
  std::optional<TuningEntry> entry = context.database->Find(key);
  if (!entry.has_value()) return false;
  absl::StatusOr<std::vector<Action>> actions = ParseActions(entry->actions);
  Scheduler trial = scheduler;
  if (!actions.ok() || !trial.ApplyAll(*actions).ok()) {
    report.notes.push_back(Concat("the stored schedule \"", entry->actions,
                                  "\" does not apply any more; searching again"));
    return false;
  }
  scheduler.ApplyAll(*actions).IgnoreError();
  report.cached = true;
  return true;
}

absl::Status Search(const UOp* kernel, const OptStrategy::Beam& beam, const PrepareContext& context,
                    Scheduler& scheduler, KernelReport& report) {
  const TuningKey key = MakeKey(kernel, context);
  if (FromDatabase(key, context, scheduler, report)) return absl::OkStatus();
  BeamOptions options;
  options.width = beam.width;
  options.seconds = beam.seconds;
  options.measure.seed = context.config.seed;
  options.measure.build = MakeBuildOptions(context.config);
  absl::StatusOr<SearchResult> result =
      BeamSearch(kernel, context.device.target(), options, context.hooks);
  if (!result.ok()) {
    // A program must not fail because tuning did.
    report.notes.push_back(Concat("the search failed (", result.status().message(),
                                  "); using the heuristic's schedule"));
    ApplyHeuristic(scheduler);
    return absl::OkStatus();
  }
  if (absl::Status s = scheduler.ApplyAll(result->actions); !s.ok()) return s;
  report.search = *result;
  if (context.database != nullptr) {
    TuningEntry entry;
    entry.actions = ActionsToString(result->actions);
    entry.seconds = result->seconds;
    entry.details =
        Concat("{\"candidates\":", result->candidates, ",\"failed\":", result->failed,
               ",\"rounds\":", result->rounds, ",\"search_seconds\":", result->search_seconds,
               ",\"heuristic_seconds\":", result->heuristic_seconds, "}");
    context.database->Store(key, entry);
  }
  return absl::OkStatus();
}

absl::Status Schedule(const UOp* kernel, const PrepareContext& context, Scheduler& scheduler,
                      KernelReport& report) {
  const OptStrategy& strategy = context.config.strategy;
  if (const auto* beam = strategy.As<OptStrategy::Beam>()) {
    return Search(kernel, *beam, context, scheduler, report);
  }
  if (const auto* list = strategy.As<OptStrategy::Explicit>()) {
    return scheduler.ApplyAll(list->actions);
  }
  if (strategy.As<OptStrategy::Heuristic>() != nullptr) ApplyHeuristic(scheduler);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PreparedKernel> PrepareKernel(const UOp* kernel, const PrepareContext& context) {
  if (absl::Status s = VerifyKernel(kernel); !s.ok()) return s;
  PreparedKernel prepared;
  KernelReport& report = prepared.report;
  report.strategy = context.config.strategy.Describe();
  UOpGraph graph;
  const Target& target = context.device.target();
  kernel = graph.Import(kernel);
  if (context.config.strategy.As<OptStrategy::NoOpt>() == nullptr) {
    kernel = RecognizeScans(graph, MergeLoops(graph, kernel));
  }
  Scheduler scheduler(graph, kernel, target);
  if (absl::Status s = Schedule(kernel, context, scheduler, report); !s.ok()) return s;
  report.actions = scheduler.actions();

  ObjectKey key;
  key.ast = scheduler.kernel()->hash;
  key.device = TargetFingerprint(target);
  key.compiler = Concat("llvm ", LlvmVersion(), " schema ", kTuningSchema);
  key.flags = CodeFlags(context.config);
  if (context.database != nullptr && !context.config.verify) {
    if (std::optional<std::vector<std::byte>> code = context.database->FindObject(key)) {
      absl::StatusOr<KernelImage> image =
          ParseImage(std::string_view(reinterpret_cast<const char*>(code->data()), code->size()));
      if (image.ok()) {
        absl::StatusOr<std::unique_ptr<CpuKernel>> loaded = context.device.Load(*std::move(image));
        if (loaded.ok()) {
          prepared.kernel = *std::move(loaded);
          report.code_cached = true;
          return prepared;
        }
      }
    }
  }
  absl::StatusOr<BuiltKernel> built =
      BuildKernel(graph, scheduler.kernel(), target, MakeBuildOptions(context.config));
  if (!built.ok()) return built.status();
  report.compile_ms = built->total_ms();
  report.lower_ms = built->lower_ms;
  if (context.database != nullptr) {
    const std::string bytes = SerializeImage(built->image);
    context.database->StoreObject(key, std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  absl::StatusOr<std::unique_ptr<CpuKernel>> loaded = context.device.Load(std::move(built->image));
  if (!loaded.ok()) return loaded.status();
  prepared.kernel = *std::move(loaded);
  return prepared;
}

}  // namespace quern
