#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "codegen/compile.h"
#include "codegen/lower.h"
#include "driver/command.h"
#include "driver/program_input.h"
#include "driver/report.h"
#include "optimizer/action_space.h"
#include "optimizer/environment.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/concat.h"
#include "rewrite/merge_loops.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/scan.h"
#include "rewrite/simplify.h"
#include "rewrite/text.h"
#include "runtime/cpu_device.h"

namespace quern {
namespace {

struct ExplainOptions {
  ProgramOptions program;
  std::optional<std::string> apply;
  std::vector<std::string> passes;
  bool actions = false;
  bool rules = false;
  bool uop = false;
  bool llvm_ir = false;
  bool assembly = false;
  std::string json;
};

class RuleCounter : public RewriteObserver {
 public:
  void OnRewrite(std::string_view rule, const UOp*, const UOp*) override {
    ++counts_[std::string(rule)];
  }
  // Most frequent first.
  std::vector<std::pair<std::string, int>> Sorted() const {
    std::vector<std::pair<std::string, int>> rules(counts_.begin(), counts_.end());
    std::sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return rules;
  }

 private:
  std::map<std::string, int> counts_;
};

// Collects what is shown; prints it at once unless a JSON report is wanted.
class Explanation {
 public:
  Explanation(const ExplainOptions& options, Json& kernel) : options_(options), kernel_(kernel) {}

  std::string Show(const UOp* sink) const { return options_.uop ? ToText(sink) : PseudoCode(sink); }

  void Section(const std::string& name, const std::string& title, const std::string& text,
               double ms = -1) {
    Json step = {{"name", name}, {"title", title}};
    if (ms >= 0) step["ms"] = ms;
    step["text"] = text;
    kernel_["steps"].push_back(step);
    if (!options_.json.empty()) return;
    std::printf("── %s: %s", name.c_str(), title.c_str());
    if (ms >= 0) std::printf(" (%.2f ms)", ms);
    std::printf("\n%s\n", text.c_str());
  }

  void Rules(const RuleCounter& counter) {
    Json rules = Json::object();
    std::string text;
    for (const auto& [rule, count] : counter.Sorted()) {
      rules[rule] = count;
      Append(text, "  ", count, " × ", rule, "\n");
    }
    kernel_["rules"] = rules;
    if (options_.json.empty() && options_.rules) {
      std::printf("── rules that fired\n%s\n", text.c_str());
    }
  }

 private:
  const ExplainOptions& options_;
  Json& kernel_;
};

// "16 2 64 REDUCE 32 UPCAST": sizes of the axes, outermost first, with the types that are not LOOP.
std::string AxesText(const Scheduler& scheduler) {
  std::string text;
  for (const Axis& a : scheduler.axes()) {
    Append(text, text.empty() ? "" : "  ", a.size);
    if (a.type != AxisType::kLoop) Append(text, " ", AxisTypeName(a.type));
  }
  return text;
}

// What could be done next, and the axes that each action would leave.
void ShowActions(const Scheduler& scheduler, Explanation& out) {
  std::string text = Concat("  now: ", AxesText(scheduler), "\n");
  const std::vector<Action> legal = LegalActions(scheduler);
  for (const Action& a : legal) {
    Scheduler next = scheduler;
    if (!next.Apply(a).ok()) continue;
    std::string name = ActionToString(a);
    name.resize(std::max<size_t>(name.size(), 18), ' ');
    Append(text, "  ", name, " → ", AxesText(next), "\n");
  }
  out.Section("actions", Concat(legal.size(), " actions are possible here"), text);
}

bool Selected(const ExplainOptions& options, std::string_view pass) {
  return options.passes.empty() ||
         std::find(options.passes.begin(), options.passes.end(), pass) != options.passes.end();
}

// The actions of --apply, or those that the environment's strategy takes without measuring.
absl::Status ChooseActions(const ExplainOptions& options, const PrepareConfig& config,
                           Scheduler& scheduler, Explanation& out) {
  if (options.apply.has_value()) {
    const absl::StatusOr<std::vector<Action>> actions = ParseActions(*options.apply);
    return actions.ok() ? scheduler.ApplyAll(*actions) : actions.status();
  }
  if (config.strategy.As<OptStrategy::NoOpt>() != nullptr) return absl::OkStatus();
  std::string text;
  size_t shown = 0;
  ApplyHeuristic(scheduler, [&](const HeuristicStep& step, size_t) {
    std::string name(step.name);
    name.resize(std::max<size_t>(name.size(), 20), ' ');
    const std::vector<Action> added(scheduler.actions().begin() + static_cast<ptrdiff_t>(shown),
                                    scheduler.actions().end());
    shown = scheduler.actions().size();
    Append(text, "  ", name, " ", added.empty() ? "-" : ActionsToString(added), "    (",
           step.purpose, ")\n");
  });
  if (Selected(options, "heuristic")) out.Section("heuristic", "steps of the default", text);
  return absl::OkStatus();
}

absl::Status CheckPassNames(const ExplainOptions& options) {
  for (const std::string& name : options.passes) {
    std::string known = "kernel merged-loops heuristic schedule";
    bool found =
        name == "kernel" || name == "merged-loops" || name == "heuristic" || name == "schedule";
    for (const Pass& p : LoweringPasses()) {
      Append(known, " ", p.name);
      found = found || p.name == name;
    }
    if (!found) {
      return absl::InvalidArgumentError(
          Concat("--pass ", name, ": there is no such pass; there are: ", known));
    }
  }
  return absl::OkStatus();
}

absl::Status ExplainKernel(const ExplainOptions& options, const PrepareConfig& config,
                           const Target& target, const KernelInfo& kernel, Json& report) {
  report["name"] = kernel.name;
  report["steps"] = Json::array();
  Explanation out(options, report);
  UOpGraph graph;
  const UOp* sink = graph.Import(kernel.sink);
  if (Selected(options, "kernel")) out.Section("kernel", "as it is written", out.Show(sink));

  RuleCounter counter;
  SimplifyOptions simplify;
  simplify.float_reassoc = config.float_reassoc;
  simplify.observer = &counter;
  if (config.rewrite_limit) simplify.rewrite_limit = *config.rewrite_limit;
  sink = Simplify(graph, sink, simplify);
  if (config.strategy.As<OptStrategy::NoOpt>() == nullptr) {
    const UOp* merged = MergeLoops(graph, sink);
    if (merged != sink && Selected(options, "merged-loops")) {
      out.Section("merged-loops", "neighbouring loops that are walked as one", out.Show(merged));
    }
    sink = RecognizeScans(graph, merged);
    if (sink != merged && Selected(options, "scans")) {
      out.Section("scans", "sums over all that comes before, in one pass", out.Show(sink));
    }
  }

  Scheduler scheduler(graph, sink, target);
  if (absl::Status s = ChooseActions(options, config, scheduler, out); !s.ok()) return s;
  sink = Simplify(graph, scheduler.kernel(), simplify);
  const std::string text = ActionsToString(scheduler.actions());
  report["actions"] = text;
  if (Selected(options, "schedule")) {
    out.Section("schedule", text.empty() ? "no actions" : text, out.Show(sink));
  }
  if (options.actions) ShowActions(scheduler, out);

  PassOptions pass_options;
  pass_options.verify = true;
  pass_options.simplify = simplify;
  pass_options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double ms) {
    if (!Selected(options, pass.name)) return;
    const std::string purpose(pass.purpose);
    const std::string name(pass.name);
    if (before == after) {
      out.Section(name, purpose, "(no change)\n", ms);
    } else if (options.passes.empty()) {
      out.Section(name, purpose, out.Show(after), ms);
    } else {
      out.Section(name, purpose,
                  Concat("before:\n", out.Show(before), "\nafter:\n", out.Show(after)), ms);
    }
  };
  absl::StatusOr<LoweredKernel> lowered = Lower(graph, sink, target, pass_options);
  if (!lowered.ok()) return lowered.status();
  out.Rules(counter);
  if (!options.llvm_ir && !options.assembly) return absl::OkStatus();

  CompileOptions compile;
  compile.keep_llvm_ir = options.llvm_ir;
  compile.keep_assembly = options.assembly;
  compile.verify = true;
  absl::StatusOr<CompiledKernel> compiled = CompileForCpu(*lowered, target, compile);
  if (!compiled.ok()) return compiled.status();
  if (options.llvm_ir) out.Section("llvm", "LLVM IR after its passes", compiled->llvm_ir);
  if (options.assembly) out.Section("assembly", target.llvm_cpu, compiled->assembly);
  return absl::OkStatus();
}

absl::Status Explain(const ExplainOptions& options) {
  const absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  PrintNotes(config->notes);
  if (config->strategy.As<OptStrategy::Beam>() != nullptr && !options.apply) {
    PrintNotes({"`explain` does not search; this is the heuristic's schedule (see --apply)"});
  }
  if (absl::Status s = CheckPassNames(options); !s.ok()) return s;
  const absl::StatusOr<ProgramInput> input = LoadProgram(options.program);
  if (!input.ok()) return input.status();
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(config->threads);
  if (!device.ok()) return device.status();
  Json report = {{"source", input->source}, {"kernels", Json::array()}};
  for (const KernelInfo& kernel : input->program.kernels) {
    Json k;
    const absl::Status s = ExplainKernel(options, *config, (*device)->target(), kernel, k);
    if (!s.ok()) return s;
    report["kernels"].push_back(std::move(k));
  }
  return options.json.empty() ? absl::OkStatus() : WriteJson(report, options.json);
}

}  // namespace

void AddExplainCommand(CLI::App& app, CommandAction& action) {
  CLI::App* explain = app.add_subcommand("explain", "Show what becomes of a formula, step by step");
  const auto options = std::make_shared<ExplainOptions>();
  AddProgramOptions(*explain, options->program);
  explain->add_option("--apply", options->apply, "Apply these actions: 'UPCAST(1,32) THREAD(0,2)'")
      ->type_name("ACTIONS");
  explain->add_option("--pass", options->passes, "Show only this pass (kernel, schedule, …)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  explain->add_flag("--actions", options->actions, "Show the actions that could come next");
  explain->add_flag("--rules", options->rules, "Show the rules that fired, and how often");
  explain->add_flag("--uop", options->uop, "Show graphs in text form instead of as loops");
  explain->add_flag("--llvm", options->llvm_ir, "Show the LLVM IR");
  explain->add_flag("--asm", options->assembly, "Show the assembly");
  explain->add_option("--json", options->json, "Write it as JSON to FILE, or - for the output")
      ->type_name("FILE");
  explain->callback([&action, options] { action = [options] { return Explain(*options); }; });
}

}  // namespace quern
