#include "bench/suite/report.h"

#include <algorithm>
#include <cstdio>

#include "rewrite/concat.h"

namespace quern {
namespace {

// Of what bounds the row, in a second.
double RateOf(const Row& row, double seconds) {
  return (row.bound_by_flops ? row.workload.flops : row.workload.bytes) / seconds;
}

double ShareOf(double rate, double limit) { return limit > 0 ? rate / limit : 0; }

const Timing* BestPeer(const Row& row, Footing footing) {
  const Timing* best = nullptr;
  for (const Timing& t : row.timings) {
    if (!t.is_peer || !t.ok() || t.footing != footing) continue;
    if (best == nullptr || t.median < best->median) best = &t;
  }
  return best;
}

// Ratios to peers that do not start from, or do not come to, the same as Quern.
struct OtherFooting {
  Footing footing;
  const char* name;
};
constexpr OtherFooting kOtherFootings[] = {
    {Footing::kPacked, "packed"}, {Footing::kOwnLayout, "own_layout"}, {Footing::kFused, "fused"}};

std::string ReadableTime(double seconds) {
  char text[32];
  if (seconds < 1e-3) {
    std::snprintf(text, sizeof text, "%.3f us", seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  }
  return text;
}

}  // namespace

void PrintHeader() {
  std::printf("%-34s %2s %-14s %12s %7s %15s %7s %-13s %6s\n", "workload", "th", "variant",
              "median", "spread", "rate", "bound", "best peer", "ratio");
}

void PrintRow(const Row& row) {
  const Workload& w = row.workload;
  for (const Timing& t : row.timings) {
    if (t.is_peer) continue;
    const std::string name = Concat(t.name, t.footing == Footing::kPacked ? " pack" : "");
    if (!t.ok()) {
      std::printf("%-34s %2d %-14s WRONG: %s\n", w.name.c_str(), row.threads, name.c_str(),
                  t.check.c_str());
      continue;
    }
    const Timing* peer = BestPeer(row, t.footing);
    const double rate = RateOf(row, t.median);
    std::printf("%-34s %2d %-14s %12s %6.1f%% %8.1f %-6s %6.1f%% %-13s", w.name.c_str(),
                row.threads, name.c_str(), ReadableTime(t.median).c_str(),
                (t.high - t.low) / t.median * 100, rate * 1e-9, row.bound_by_flops ? "GFLOP" : "GB",
                ShareOf(rate, row.limit) * 100, peer == nullptr ? "none" : peer->name.c_str());
    if (peer != nullptr) std::printf(" %6.3f", peer->median / t.median);
    for (const OtherFooting& other : kOtherFootings) {
      if (t.footing != Footing::kPlain) continue;
      const Timing* best = BestPeer(row, other.footing);
      if (best != nullptr) std::printf("  %s %.3f", other.name, best->median / t.median);
    }
    std::printf("%s\n", row.kernels > 1 ? Concat("  (", row.kernels, " kernels)").c_str() : "");
  }
  std::string peers;
  for (const Timing& t : row.timings) {
    if (!t.is_peer) continue;
    if (!t.ok()) {
      Append(peers, "  ", t.name, " REFUSED (", t.check, ")");
      continue;
    }
    char rate[32];
    std::snprintf(rate, sizeof rate, " %.1f", RateOf(row, t.median) * 1e-9);
    Append(peers, "  ", t.name, rate);
  }
  if (!peers.empty()) std::printf("    %s\n", peers.c_str());
  std::fflush(stdout);
}

void AppendJson(const Row& row, nlohmann::json& rows) {
  const Workload& w = row.workload;
  nlohmann::json peers = nlohmann::json::object();
  for (const Timing& t : row.timings) {
    if (!t.is_peer) continue;
    peers[t.name] = {{"seconds_median", t.median}, {"check", t.check}};
  }
  for (const Timing& t : row.timings) {
    if (t.is_peer) continue;
    const Timing* peer = BestPeer(row, t.footing);
    const double rate = t.ok() ? RateOf(row, t.median) : 0;
    nlohmann::json object = {
        {"workload", w.name},
        {"dtype", w.dtype},
        {"threads", row.threads},
        {"variant", t.name},
        {"seconds_median", t.median},
        {"seconds_low", t.low},
        {"seconds_high", t.high},
        {"rate", rate},
        {"bound", row.bound_by_flops ? "flops" : "bytes"},
        {"bound_fraction", ShareOf(rate, row.limit)},
        {"best_bound_fraction", ShareOf(rate, row.best_limit)},
        {"best_peer", nullptr},
        {"peer_seconds", nullptr},
        {"ratio_to_best_peer", nullptr},
        {"check", t.check},
        {"packed", w.always_packed || t.footing == Footing::kPacked},
        {"kernels", row.kernels},
        {"peers", peers},
    };
    if (peer != nullptr) {
      object["best_peer"] = peer->name;
      object["peer_seconds"] = peer->median;
      if (t.ok()) object["ratio_to_best_peer"] = peer->median / t.median;
    }
    for (const OtherFooting& other : kOtherFootings) {
      const Timing* best = BestPeer(row, other.footing);
      if (best == nullptr || !t.ok() || t.footing != Footing::kPlain) continue;
      object[Concat("ratio_to_", other.name)] = best->median / t.median;
    }
    rows.push_back(std::move(object));
  }
}

}  // namespace quern
