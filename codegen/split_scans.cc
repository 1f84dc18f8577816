#include "codegen/split_scans.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite/build.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

// `value` stands for the SCAN's own, with loops turned around already.
const UOp* Split(UOpGraph& g, const UOp* scan, const UOp* value, int& next_axis) {
  const Op op = scan->reduce_op();
  std::vector<const UOp*> loops;
  std::vector<const UOp*> registers;
  std::vector<const UOp*> reduced;
  for (const UOp* r : scan->src().subspan(1)) {
    if (!IsRegisterAxis(r->range_type())) {
      loops.push_back(r);
      continue;
    }
    registers.push_back(r);
    reduced.push_back(Range(g, r->range_size(), next_axis++, AxisType::kUnroll));
  }
  if (loops.empty()) return Scan(g, op, scan->arg.b, value, registers);
  if (registers.empty()) {
    const UOp* before = Scan(g, op, kScanExclusive, value, loops);
    return (scan->arg.b & kScanExclusive) != 0 ? before : Binary(g, op, before, value);
  }
  const UOp* total = Reduce(g, op, Substitute(g, value, registers, reduced), reduced);
  const UOp* before = Scan(g, op, kScanExclusive, total, loops);
  return Binary(g, op, before, Scan(g, op, scan->arg.b, value, registers));
}

}  // namespace

const UOp* SplitScans(UOpGraph& graph, const UOp* sink) {
  if (sink->source_count != 0 && sink->src(0)->op == Op::kSink) {
    std::vector<const UOp*> phases;
    for (const UOp* phase : sink->src()) phases.push_back(SplitScans(graph, phase));
    return Sink(graph, phases);
  }
  const std::vector<const UOp*> order = Toposort(sink);
  absl::flat_hash_set<const UOp*> backwards;
  int next_axis = 0;
  bool any = false;
  for (const UOp* u : order) {
    if (u->op == Op::kRange) next_axis = std::max(next_axis, u->range_axis() + 1);
    if (u->op != Op::kScan) continue;
    any = true;
    for (const UOp* r : u->src().subspan(1)) {
      const bool loop = !IsRegisterAxis(r->range_type());
      if (loop && (u->arg.b & kScanReverse) != 0) backwards.insert(r);
    }
  }
  if (!any) return sink;
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : order) {
    if (backwards.contains(u)) {
      done[u] = Sub(graph, IndexConst(graph, u->range_size() - 1), u);
      continue;
    }
    const bool names_ranges = u->op == Op::kReduce || u->op == Op::kScan || u->op == Op::kStage;
    sources.clear();
    for (size_t i = 0; i < u->source_count; ++i) {
      sources.push_back(names_ranges && i > 0 ? u->src(i) : done.at(u->src(i)));
    }
    done[u] = u->op == Op::kScan ? Split(graph, u, sources[0], next_axis)
                                 : WithSources(graph, u, sources);
  }
  return done.at(sink);
}

}  // namespace quern
