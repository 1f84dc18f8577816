#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "codegen/stream_stores.h"
#include "optimizer/best_first.h"
#include "optimizer/heuristic_steps.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

// Whether threads with `chunk` steps of a loop each would write short pieces in turns: hardware,
// which fetches ahead within a page, then fetches what the other thread is writing.
bool WritesInTurns(const StatementAccesses* store, const UOp* range, int64_t chunk) {
  constexpr int64_t kShortPiece = 16 * 4096;  // bytes
  if (store == nullptr) return false;
  const LinearForm form = ToLinear(store->node->src(0)->src(1));
  const int64_t step = std::abs(form.CoefficientOf(range));
  const bool others = std::any_of(form.terms.begin(), form.terms.end(),
                                  [&](const auto& term) { return std::abs(term.second) > step; });
  return others && step * chunk * ByteSize(store->node->src(1)->dtype.scalar) < kShortPiece;
}

// Into how many parts threads cut what is scanned along `range`. Each is read twice, so of data
// that comes from memory a part takes half a cache: then it comes from there once.
int64_t ScanParts(const Scheduler& s, const UOp* range, int64_t threads) {
  constexpr int64_t kMostParts = 4096;  // A part adds up the totals of all before it.
  const RangeSets sets(s.kernel());
  absl::flat_hash_set<const UOp*> read;
  for (const UOp* u : Toposort(s.kernel())) {
    if (u->op == Op::kLoad && sets.Depends(u, range)) read.insert(u->src(0)->src(0));
  }
  int64_t bytes = 0;
  for (const UOp* buffer : read) bytes += buffer->buffer_size() * ByteSize(buffer->dtype.scalar);
  const int64_t cache = s.target().l2_bytes;
  if (bytes < StreamBytes(s.target())) return threads;
  const int64_t size = range->range_size();
  int64_t parts = threads;
  while (2 * bytes > parts * cache && 2 * parts <= kMostParts && CanDivide(size, 2 * parts)) {
    parts *= 2;
  }
  return parts;
}

}  // namespace

void DivideAmongThreads(Scheduler& s, Decisions& decisions) {
  constexpr double kScannedTwice = 0.3;  // Blocks of a scan are read for their totals first.
  constexpr double kInTurns = 0.28;      // Worse than masks at the ends of chunks.
  const int64_t cores = s.target().cores;
  if (!PaysThreads(s)) return;
  // The division with the shortest longest chunk; padding is worth it if that makes it shorter.
  struct Choice {
    int axis = -1;
    int64_t threads = 0;
    double share = 1;    // of the work, in the largest chunk
    int64_t stride = 0;  // of the output
  };
  std::vector<Choice> choices;
  const RangeSets sets(s.kernel());
  const uint64_t masked = MaskedRanges(sets, s.kernel());
  // Where nothing is reduced, each thread best writes one piece of the output.
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  const StatementAccesses* store = FindStore(all);
  const bool plain = all.size() == 1 && store != nullptr;
  const bool product = std::any_of(all.begin(), all.end(),
                                   [&](const StatementAccesses& a) { return IsProduct(sets, a); });
  for (size_t i = 0; i < s.axes().size(); ++i) {
    const Axis& a = s.axes()[i];
    if (a.reduce || a.type != AxisType::kLoop) continue;
    for (int64_t threads = cores; threads > 1; --threads) {
      const int64_t chunk = (a.size + threads - 1) / threads;
      const bool divides = a.size % threads == 0;
      if (!CanDivide(a.size, threads)) continue;
      const double share = static_cast<double>(chunk) / static_cast<double>(a.size);
      double margin = divides ? 0 : 1e-3;  // Padding brings masks with it.
      if (IsScanned(s.kernel(), a.range)) margin += kScannedTwice;
      if (!product && WritesInTurns(store, a.range, chunk)) margin += kInTurns;
      // At the ends of its chunk a thread asks whether it has the ends of all.
      constexpr double kMasks = 0.2;
      constexpr int64_t kShortChunk = 8;
      if ((masked & sets.Bit(a.range)) != 0 && chunk < kShortChunk) margin += kMasks;
      const int64_t stride =
          plain ? std::abs(ToLinear(store->node->src(0)->src(1)).CoefficientOf(a.range)) : 0;
      if (share + margin < 1) {
        choices.push_back({static_cast<int>(i), threads, share + margin, stride});
      }
    }
  }
  if (choices.empty()) return;
  constexpr size_t kMostWays = 4;
  choices =
      BestFirst(choices, kMostWays, [](const Choice& c) { return std::pair(c.share, -c.stride); });
  Choice best = decisions.Pick("divided-axis", choices);
  if (const UOp* range = s.axes()[best.axis].range; IsScanned(s.kernel(), range)) {
    best.threads = ScanParts(s, range, best.threads);
  }
  PadAndApply(s, ActionKind::kThread, s.axes()[best.axis].range, best.threads);
}

}  // namespace quern
