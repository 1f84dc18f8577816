#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "driver/command.h"
#include "driver/machine_peak.h"
#include "driver/report.h"
#include "optimizer/environment.h"
#include "rewrite/concat.h"
#include "runtime/cpu_device.h"

namespace quern {
namespace {

struct DevicesOptions {
  bool measure = false;
  std::string json;
};

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) Append(text, text.empty() ? "" : " ", w);
  return text;
}

absl::Status ShowDevices(const DevicesOptions& options) {
  const absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(config->threads);
  if (!device.ok()) return device.status();
  const Target& t = (*device)->target();
  double flops = 0, bandwidth = 0;
  if (options.measure) {
    flops = MeasurePeakFlops(kF32Type, t.cores);
    bandwidth = MeasureBandwidth(t.cores, t.l3_bytes);
  }
  if (!options.json.empty()) {
    Json d = {{"kind", "cpu"},
              {"name", t.name},
              {"triple", t.llvm_triple},
              {"cpu", t.llvm_cpu},
              {"cores", t.cores},
              {"vector_bytes", t.vector_bytes},
              {"vector_registers", t.vector_registers},
              {"l1_bytes", t.l1_bytes},
              {"l2_bytes", t.l2_bytes},
              {"l3_bytes", t.l3_bytes},
              {"features", t.features}};
    if (options.measure) {
      d["peak_gflops_f32"] = flops * 1e-9;
      d["bandwidth_gb_per_s"] = bandwidth * 1e-9;
    }
    return WriteJson({{"devices", Json::array({d})}}, options.json);
  }
  std::printf("cpu: %s (%s, %s)\n", t.name.c_str(), t.llvm_cpu.c_str(), t.llvm_triple.c_str());
  std::printf("  cores      %d\n", t.cores);
  std::printf("  vectors    %d registers of %d bytes\n", t.vector_registers, t.vector_bytes);
  std::printf("  caches     %lld kB, %lld kB, %lld kB\n", static_cast<long long>(t.l1_bytes >> 10),
              static_cast<long long>(t.l2_bytes >> 10), static_cast<long long>(t.l3_bytes >> 10));
  if (options.measure) {
    std::printf("  FMA peak   %.1f GFLOP/s (f32, measured)\n", flops * 1e-9);
    std::printf("  memory     %.1f GB/s (measured)\n", bandwidth * 1e-9);
  }
  std::printf("  features   %s\n", Join(t.features).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddDevicesCommand(CLI::App& app, CommandAction& action) {
  CLI::App* devices = app.add_subcommand("devices", "Show what kernels can run on");
  const auto options = std::make_shared<DevicesOptions>();
  devices->add_flag("--measure", options->measure, "Measure FMA peak and memory bandwidth");
  devices->add_option("--json", options->json, "Write it as JSON to FILE, or - for the output")
      ->type_name("FILE");
  devices->callback([&action, options] { action = [options] { return ShowDevices(*options); }; });
}

}  // namespace quern
