#include "codegen/two_stage.h"

#include <vector>

#include "codegen/lowered_kernel.h"
#include "rewrite/build.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

const UOp* ThreadRangeOf(const UOp* reduce) {
  for (const UOp* r : reduce->src().subspan(1)) {
    if (r->range_type() == AxisType::kThread) return r;
  }
  return nullptr;
}

// The loops around a nested reduction may belong to another one; in a phase of its own they are
// loops over its results.
AxisType AsOutput(AxisType type) {
  if (!IsReduceAxis(type)) return type;
  return IsRegisterAxis(type) ? AxisType::kUpcast : AxisType::kLoop;
}

// A free axis number: after all others.
int NextAxis(const RangeSets& sets) {
  return sets.ranges().empty() ? 0 : sets.ranges().back()->range_axis() + 1;
}

}  // namespace

const UOp* SplitPhases(UOpGraph& graph, const UOp* sink) {
  std::vector<const UOp*> phases;
  int64_t slot = kFirstTemporarySlot;
  for (bool changed = true; changed;) {
    changed = false;
    const RangeSets sets(sink);
    for (const UOp* reduce : Toposort(sink)) {
      if (reduce->op != Op::kReduce) continue;
      const UOp* threads = ThreadRangeOf(reduce);
      if (threads == nullptr) continue;
      std::vector<const UOp*> dimensions = {threads};
      for (const UOp* r : sets.Members(sets.Of(reduce))) dimensions.push_back(r);
      int64_t elements = 1;
      const UOp* offset = IndexConst(graph, 0);
      for (size_t i = dimensions.size(); i-- > 0;) {
        offset = Add(graph, Mul(graph, dimensions[i], IndexConst(graph, elements)), offset);
        elements *= dimensions[i]->range_size();
      }
      const UOp* partial = Index(graph, Param(graph, reduce->dtype, slot++, elements), offset);
      std::vector<const UOp*> rest;
      for (const UOp* r : reduce->src().subspan(1)) {
        if (r != threads) rest.push_back(r);
      }
      const UOp* value = reduce->src(0);
      if (!rest.empty()) value = Reduce(graph, reduce->reduce_op(), value, rest);
      std::vector<const UOp*> outputs;
      for (const UOp* r : dimensions) {
        outputs.push_back(
            Range(graph, r->range_size(), r->range_axis(), AsOutput(r->range_type())));
      }
      const UOp* store = Substitute(graph, Store(graph, partial, value), dimensions, outputs);
      phases.push_back(Sink(graph, {{store}}));
      const UOp* again = Range(graph, threads->range_size(), NextAxis(sets), AxisType::kReduce);
      const UOp* load = Substitute(graph, Load(graph, partial), {{threads}}, {{again}});
      const UOp* combined = Reduce(graph, reduce->reduce_op(), load, {{again}});
      sink = Substitute(graph, sink, {{reduce}}, {{combined}});
      changed = true;
      break;
    }
  }
  phases.push_back(sink);
  return Sink(graph, phases);
}

}  // namespace quern
