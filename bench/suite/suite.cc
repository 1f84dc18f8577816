// Quern beside the libraries that one would call instead, in one process and in turns. Each result
// is compared with one in double precision first. Exits with 1 if a result of Quern is wrong.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bench/suite/measure_row.h"
#include "bench/suite/report.h"
#include "runtime/cpu_target.h"

namespace quern {
namespace {

struct CommandLine {
  std::string filter;
  std::vector<int> threads;
  std::string json;
  bool list = false;
  SuiteOptions options;
};

std::vector<Peer> FindPeers() {
  std::vector<Peer> peers;
  for (const auto& find :
       {OpenBlasPeer, BlisPeer, OneDnnPeer, EigenPeer, LibxsmmPeer, PlainLoopsPeer}) {
    peers.push_back(find());
    const Peer& peer = peers.back();
    std::printf("%-9s %s%s\n", peer.name.c_str(),
                peer.found ? "" : "MISSING: ", peer.details.c_str());
  }
  return peers;
}

bool WriteJson(const std::string& file, const Target& target, const std::vector<Peer>& peers,
               const std::map<int, Limits>& limits, const nlohmann::json& rows) {
  nlohmann::json document = {{"target", target.name}, {"rows", rows}};
  for (const Peer& peer : peers) {
    document["peers"][peer.name] = {{"found", peer.found}, {"details", peer.details}};
  }
  for (const auto& [threads, limit] : limits) {
    document["limits"].push_back({{"threads", threads},
                                  {"flops_per_second", limit.flops},
                                  {"bytes_per_second", limit.bytes}});
  }
  std::ofstream stream(file);
  stream << document.dump(1) << "\n";
  return static_cast<bool>(stream);
}

// How to run a row by hand.
void ListWorkloads(const std::string& filter) {
  for (const Workload& w : SuiteWorkloads()) {
    if (w.name.find(filter) == std::string::npos) continue;
    std::printf("%s\n  quern run '%s' --size %s", w.name.c_str(), w.formula.c_str(),
                w.sizes.c_str());
    for (const std::string& shape : w.shapes) std::printf(" --shape %s", shape.c_str());
    if (!w.dtypes.empty()) std::printf(" --dtype %s", w.dtypes.c_str());
    if (!w.weights.empty()) std::printf(" --constant %s", w.weights.c_str());
    std::printf("\n");
  }
}

int RunSuite(const CommandLine& command) {
  const Target target = DetectCpu();
  std::printf("%s, %d cores\n", target.name.c_str(), target.cores);
  const std::vector<Peer> peers = FindPeers();
  std::map<int, Limits> limits;
  for (int threads : command.threads) {
    Limits& limit = limits[threads];
    limit.Measure(target, threads);
    std::printf("%d thread%s: %.1f GFLOP/s f32 FMA, %.1f GB/s memory\n", threads,
                threads == 1 ? "" : "s", limit.flops * 1e-9, limit.bytes * 1e-9);
  }
  PrintHeader();

  bool right = true;
  nlohmann::json rows = nlohmann::json::array();
  for (const Workload& workload : SuiteWorkloads()) {
    if (workload.name.find(command.filter) == std::string::npos) continue;
    for (int threads : command.threads) {
      // Again beside each row: a shared machine has hours in which its limits are lower, and only
      // the best says what it can do.
      limits[threads].Measure(target, threads);
      absl::StatusOr<Row> row =
          MeasureRow(workload, threads, target, limits[threads], peers, command.options);
      if (!row.ok()) {
        std::printf("%s: %s\n", workload.name.c_str(), row.status().ToString().c_str());
        right = false;
        continue;
      }
      for (const Timing& t : row->timings) right = right && (t.is_peer || t.ok());
      PrintRow(*row);
      AppendJson(*row, rows);
      // After each row, so that a run that is ended early leaves what it has.
      if (!command.json.empty() && !WriteJson(command.json, target, peers, limits, rows)) {
        std::fprintf(stderr, "bench_suite: cannot write %s\n", command.json.c_str());
        return 1;
      }
    }
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  quern::CommandLine command;
  CLI::App app("Quern beside other libraries");
  app.add_option("--filter", command.filter, "Only workloads whose name contains this");
  app.add_option("--threads", command.threads, "Numbers of threads, as in 1,2")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--json", command.json, "File for the rows");
  app.add_option("--seconds", command.options.seconds, "Of samples for each candidate of a row")
      ->check(CLI::PositiveNumber);
  app.add_flag("--tuned", command.options.tuned, "Also search, with the cache of results on");
  app.add_flag("--list", command.list, "Print the formulas of the rows, and run nothing");
  CLI11_PARSE(app, argc, argv);
  if (command.list) {
    quern::ListWorkloads(command.filter);
    return 0;
  }
  if (command.threads.empty()) command.threads = {1, quern::DetectCpu().cores};
  return quern::RunSuite(command);
}
