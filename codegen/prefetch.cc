#include "codegen/prefetch.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/access.h"
#include "codegen/map_statements.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kBytesAhead = 1024;
constexpr int64_t kLeastIterations = 32;  // shorter loops are over before it helps

bool IsInnermost(const UOp* loop) {
  for (const UOp* u : Toposort(loop)) {
    if (u != loop && u->op == Op::kLoop) return false;
  }
  return loop->src(0)->range_size() >= kLeastIterations;
}

// Elements to fetch ahead of a load in a loop over `range`; 0 for none.
int64_t Distance(const UOp* load, const UOp* range) {
  if (load->op != Op::kLoad || load->dtype.lanes == 1) return 0;
  const Access access = ReadAccess(load->src(0));
  if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.base == nullptr)
    return 0;
  if (access.buffer->op != Op::kScratch) return 0;
  const int64_t step = ToLinear(access.base).CoefficientOf(range);
  if (step <= 0) return 0;
  const int64_t step_bytes = step * ByteSize(load->dtype.scalar);
  return (kBytesAhead + step_bytes - 1) / step_bytes * step;
}

const UOp* MarkLoop(UOpGraph& graph, const UOp* loop) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(loop)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    const int64_t distance = Distance(u, loop->src(0));
    done[u] = distance == 0 ? WithSources(graph, u, sources)
                            : graph.Make(u->op, u->dtype, sources, {distance, 0});
  }
  return done.at(loop);
}

}  // namespace

const UOp* MarkPrefetches(UOpGraph& graph, const UOp* sink) {
  return MapStatements(graph, sink, [&](const UOp* u) {
    return u->op == Op::kLoop && IsInnermost(u) ? MarkLoop(graph, u) : nullptr;
  });
}

}  // namespace quern
