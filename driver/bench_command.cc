#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "driver/command.h"
#include "driver/measure_program.h"
#include "driver/program_input.h"
#include "driver/report.h"
#include "driver/search_progress.h"
#include "optimizer/environment.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

struct BenchRow {
  std::string_view name;
  const char* formula;
  const char* sizes;
  const char* dtypes = "";
  const char* shape = "";
};

constexpr const char* kProduct = "C[i,j] = sum[k](A[i,k]*B[k,j])";

constexpr BenchRow kBench[] = {
    {"matmul-256", kProduct, "i=256,j=256,k=256"},
    {"matmul-1024", kProduct, "i=1024,j=1024,k=1024"},
    {"matmul-bf16-512", kProduct, "i=512,j=512,k=512", "A=bf16,B=bf16"},
    {"matvec-4096", "y[i] = sum[k](A[i,k]*x[k])", "i=4096,k=4096"},
    {"multiply-add-16M", "d[i] = a[i]*b[i]+c[i]", "i=16777216"},
    {"row-sum-4096", "s[i] = sum[j](X[i,j])", "i=4096,j=4096"},
    {"sum-16M", "s[] = sum[i](x[i])", "i=16777216"},
    {"transpose-2048", "Y[i,j] = X[j,i]", "i=2048,j=2048"},
    {"softmax-1024",
     "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
     "i=1024,j=1024"},
    {"layernorm-1024",
     "u[i] = sum[j](X[i,j])/1024; d[i,j] = X[i,j]-u[i]; "
     "Y[i,j] = d[i,j]/sqrt(sum[k](d[i,k]*d[i,k])/1024 + 1e-5)",
     "i=1024,j=1024"},
    {"gelu-4M", "y[i] = 0.5*x[i]*(1 + erf(x[i]*0.70710678))", "i=4194304"},
    {"convolution-3x3", "Y[o,h,w] = sum[c,p,q](pad(X[c,h+p-1,w+q-1])*W[o,c,p,q])",
     "o=64,h=56,w=56,c=64,p=3,q=3", "", "X=64,56,56"},
};

struct BenchOptions {
  std::string filter;
  bool list = false;
  bool check = false;
  std::string json;
};

absl::StatusOr<ProgramReport> MeasureRow(const BenchRow& row, const PrepareConfig& config,
                                         bool check) {
  ProgramOptions program;
  program.formula = row.formula;
  program.sizes = {row.sizes};
  if (*row.dtypes != '\0') program.dtypes = {row.dtypes};
  if (*row.shape != '\0') program.shapes = {row.shape};
  absl::StatusOr<ProgramInput> input = LoadProgram(program);
  if (!input.ok()) return input.status();
  MeasureProgramOptions options;
  options.seed = config.seed;
  options.check = check;
  return MeasureProgram(*std::move(input), config, options);
}

void PrintRow(const BenchRow& row, const ProgramReport& r) {
  const double rate = r.seconds_median > 0 ? r.flops / r.seconds_median : 0;
  const double traffic = r.seconds_median > 0 ? r.bytes / r.seconds_median : 0;
  std::printf("%-18s %9s ±%4.1f %%  %7.1f GFLOP/s %3.0f %%  %6.1f GB/s %3.0f %%  x%-5.2f %s\n",
              std::string(row.name).c_str(), SecondsText(r.seconds_median).c_str(),
              r.seconds_median > 0 ? 50 * (r.seconds_high - r.seconds_low) / r.seconds_median : 0,
              rate * 1e-9, 100 * rate / r.peak_flops, traffic * 1e-9, 100 * traffic / r.bandwidth,
              r.speedup_vs_heuristic.value_or(0), r.check && !r.check->ok ? "WRONG" : "");
  std::fflush(stdout);
}

absl::Status Bench(const BenchOptions& options) {
  const absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  PrintNotes(config->notes);
  Json report = {{"strategy", config->strategy.Describe()}, {"programs", Json::array()}};
  bool wrong = false;
  int matches = 0;
  if (options.json != "-" && !options.list) {
    std::printf("%-18s %9s %7s  %15s %5s  %11s %5s  %s\n", "", "time", "", "", "peak", "", "mem.",
                "against the heuristic");
  }
  for (const BenchRow& row : kBench) {
    if (row.name.find(options.filter) == std::string_view::npos) continue;
    ++matches;
    if (options.list) {
      std::printf("%-18s %s   (%s)\n", std::string(row.name).c_str(), row.formula, row.sizes);
      continue;
    }
    const absl::StatusOr<ProgramReport> r = MeasureRow(row, *config, options.check);
    if (!r.ok()) return r.status();
    wrong = wrong || (r->check && !r->check->ok);
    if (options.json != "-") PrintRow(row, *r);
    Json object = ReportAsJson(*r);
    object["name"] = row.name;
    report["programs"].push_back(std::move(object));
    if (Interrupted()) break;
  }
  if (matches == 0) {
    return absl::InvalidArgumentError(
        Concat("no program is called \"", options.filter, "\"; `quern bench --list` shows them"));
  }
  if (!options.json.empty()) {
    if (absl::Status s = WriteJson(report, options.json); !s.ok()) return s;
  }
  return wrong ? absl::DataLossError("a check failed") : absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandAction& action) {
  CLI::App* bench = app.add_subcommand("bench", "Time a set of common kernels");
  const auto options = std::make_shared<BenchOptions>();
  bench->add_option("filter", options->filter, "Only those whose names hold this");
  bench->add_flag("--list", options->list, "Show the kernels without running them");
  bench->add_flag("--check", options->check, "Check their outputs, too");
  bench->add_option("--json", options->json, "Write a report as JSON to FILE, or - for the output")
      ->type_name("FILE");
  bench->callback([&action, options] { action = [options] { return Bench(*options); }; });
}

}  // namespace quern
