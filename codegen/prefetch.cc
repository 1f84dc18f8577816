#include "codegen/prefetch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "codegen/map_statements.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kBytesAhead = 1024, kLine = 64;
constexpr int64_t kLeastIterations = 32;  // shorter loops are over before it helps

// The innermost loops below `statement` that run long enough, together with the loops of the same
// reduction around them: a packed operand lies in the order in which those read it. Says whether
// there is a loop at all. Recursion is as deep as the loop nest.
bool FindLongLoops(const UOp* statement, int64_t iterations,
                   absl::flat_hash_set<const UOp*>& found) {
  if (statement->op == Op::kStore) return false;
  if (statement->op == Op::kLoop) {
    const UOp* range = statement->src(0);
    if (!IsReduceAxis(range->range_type())) iterations = 1;
    iterations *= range->range_size();
  }
  bool loops_inside = false;
  for (const UOp* s : statement->src()) {
    if (GetOpInfo(s->op).statement) loops_inside |= FindLongLoops(s, iterations, found);
  }
  if (statement->op != Op::kLoop) return loops_inside;
  if (!loops_inside && iterations >= kLeastIterations) found.insert(statement);
  return true;
}

// A load of a packed operand, and how far ahead of it memory is to be fetched.
struct PackedLoad {
  const UOp* load = nullptr;
  LinearForm place;
  int64_t distance = 0;  // elements
};

// Those that a loop over `range` walks along.
std::vector<PackedLoad> PackedLoads(const std::vector<const UOp*>& order, const UOp* range) {
  std::vector<PackedLoad> loads;
  for (const UOp* u : order) {
    if (u->op != Op::kLoad || u->dtype.lanes == 1) continue;
    const Access access = ReadAccess(u->src(0));
    if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.base == nullptr) {
      continue;
    }
    const bool packed =
        access.buffer->op == Op::kScratch ||
        (access.buffer->op == Op::kParam && access.buffer->slot() >= kFirstPackedSlot);
    if (!packed) continue;
    LinearForm place = ToLinear(access.base);
    const int64_t step = place.CoefficientOf(range);
    if (step <= 0) continue;
    const int64_t step_bytes = step * ByteSize(u->dtype.scalar);
    const int64_t distance = (kBytesAhead + step_bytes - 1) / step_bytes * step;
    loads.push_back({u, std::move(place), distance});
  }
  return loads;
}

// The first load of each cache line: the others would fetch it again.
absl::flat_hash_map<const UOp*, int64_t> DistancesOfLines(std::vector<PackedLoad> loads) {
  std::sort(loads.begin(), loads.end(), [](const PackedLoad& x, const PackedLoad& y) {
    return std::pair(x.place.constant, x.load->id) < std::pair(y.place.constant, y.load->id);
  });
  absl::flat_hash_map<const UOp*, int64_t> distances;
  std::vector<PackedLoad> first;  // of the latest line of each walk
  for (PackedLoad& l : loads) {
    const UOp* buffer = l.load->src(0)->src(0);
    auto same = std::find_if(first.begin(), first.end(), [&](const PackedLoad& known) {
      return known.load->src(0)->src(0) == buffer && known.place.terms == l.place.terms;
    });
    if (same != first.end()) {
      const int64_t elements = l.place.constant - same->place.constant;
      if (elements * ByteSize(l.load->dtype.scalar) < kLine) continue;
    }
    distances[l.load] = l.distance;
    if (same == first.end()) {
      first.push_back(std::move(l));
    } else {
      *same = std::move(l);
    }
  }
  return distances;
}

const UOp* MarkLoop(UOpGraph& graph, const UOp* loop) {
  const std::vector<const UOp*> order = Toposort(loop);
  const absl::flat_hash_map<const UOp*, int64_t> distances =
      DistancesOfLines(PackedLoads(order, loop->src(0)));
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : order) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    const auto found = distances.find(u);
    done[u] = found == distances.end() ? WithSources(graph, u, sources)
                                       : graph.Make(u->op, u->dtype, sources, {found->second, 0});
  }
  return done.at(loop);
}

}  // namespace

const UOp* MarkPrefetches(UOpGraph& graph, const UOp* sink) {
  absl::flat_hash_set<const UOp*> loops;
  FindLongLoops(sink, 1, loops);
  return MapStatements(
      graph, sink, [&](const UOp* u) { return loops.contains(u) ? MarkLoop(graph, u) : nullptr; });
}

}  // namespace quern
