#include "codegen/widen_reductions.h"

#include "absl/container/flat_hash_map.h"
#include "rewrite/build.h"

namespace quern {

const UOp* WidenReductions(UOpGraph& graph, const UOp* sink) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(sink)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    const bool narrow = u->dtype.scalar == ScalarType::kF16 || u->dtype.scalar == ScalarType::kBF16;
    if ((u->op != Op::kReduce && u->op != Op::kScan) || !narrow) {
      done[u] = WithSources(graph, u, sources);
      continue;
    }
    sources[0] = Cast(graph, sources[0], kF32Type);
    const UOp* sum = graph.Make(u->op, sources[0]->dtype, sources, u->arg);
    done[u] = Cast(graph, sum, u->dtype);
  }
  return done.at(sink);
}

}  // namespace quern
