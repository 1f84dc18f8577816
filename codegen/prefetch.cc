#include "codegen/prefetch.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "codegen/map_statements.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kBytesAhead = 1024;
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

// Elements to fetch ahead of a load in a loop over `range`; 0 for none.
int64_t Distance(const UOp* load, const UOp* range) {
  if (load->op != Op::kLoad || load->dtype.lanes == 1) return 0;
  const Access access = ReadAccess(load->src(0));
  if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.base == nullptr)
    return 0;
  const bool packed =
      access.buffer->op == Op::kScratch ||
      (access.buffer->op == Op::kParam && access.buffer->slot() >= kFirstPackedSlot);
  if (!packed) return 0;
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
  absl::flat_hash_set<const UOp*> loops;
  FindLongLoops(sink, 1, loops);
  return MapStatements(
      graph, sink, [&](const UOp* u) { return loops.contains(u) ? MarkLoop(graph, u) : nullptr; });
}

}  // namespace quern
