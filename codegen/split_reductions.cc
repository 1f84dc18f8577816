#include "codegen/split_reductions.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite/build.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// The loops of one REDUCE, outermost group first; an output loop stands between two groups.
std::vector<std::vector<const UOp*>> GroupLoops(const RangeSets& sets, const UOp* reduce) {
  std::vector<const UOp*> own;
  for (const UOp* r : reduce->src().subspan(1)) {
    if (!IsRegisterAxis(r->range_type())) own.push_back(r);
  }
  SortByAxis(own);
  std::vector<const UOp*> outputs;
  for (const UOp* r : sets.Members(sets.Of(reduce))) {
    if (!IsRegisterAxis(r->range_type())) outputs.push_back(r);
  }
  std::vector<std::vector<const UOp*>> groups;
  for (const UOp* r : own) {
    bool new_group = groups.empty();
    if (!new_group) {
      const int previous = groups.back().back()->range_axis();
      for (const UOp* o : outputs) {
        new_group |= previous < o->range_axis() && o->range_axis() < r->range_axis();
      }
    }
    if (new_group) groups.emplace_back();
    groups.back().push_back(r);
  }
  return groups;
}

}  // namespace

const UOp* SplitReductions(UOpGraph& graph, const UOp* sink) {
  if (sink->source_count != 0 && sink->src(0)->op == Op::kSink) {
    std::vector<const UOp*> phases;
    for (const UOp* phase : sink->src()) phases.push_back(SplitReductions(graph, phase));
    return Sink(graph, phases);
  }
  const RangeSets sets(sink);
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(sink)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    if (u->op != Op::kReduce) {
      done[u] = WithSources(graph, u, sources);
      continue;
    }
    const std::vector<std::vector<const UOp*>> groups = GroupLoops(sets, u);
    if (groups.size() < 2) {
      done[u] = WithSources(graph, u, sources);
      continue;
    }
    std::vector<const UOp*> innermost = groups.back();
    for (const UOp* r : u->src().subspan(1)) {
      if (IsRegisterAxis(r->range_type())) innermost.push_back(r);
    }
    const UOp* value = Reduce(graph, u->reduce_op(), sources[0], innermost);
    for (size_t i = groups.size() - 1; i-- > 0;) {
      value = Reduce(graph, u->reduce_op(), value, groups[i]);
    }
    done[u] = value;
  }
  return done.at(sink);
}

}  // namespace quern
