#include "codegen/prefix_totals.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace quern {

const UOp* SharePrefixTotals(UOpGraph& graph, const UOp* sink) {
  const std::vector<const UOp*> order = Toposort(sink);
  absl::flat_hash_map<std::pair<int64_t, const UOp*>, int64_t> flags;
  for (const UOp* u : order) {
    if (u->op == Op::kPrefix) flags[{u->arg.a, u->src(0)}] = u->arg.b & kScanReverse;
  }
  if (flags.empty()) return sink;
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : order) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    done[u] = WithSources(graph, u, sources);
    if (u->op != Op::kHorizontal || u->dtype.lanes != 1) continue;
    const auto found = flags.find({u->arg.a, u->src(0)});
    if (found == flags.end()) continue;
    const UOp* prefix =
        graph.Make(Op::kPrefix, sources[0]->dtype, {sources[0]}, {u->arg.a, found->second});
    const int64_t last = found->second != 0 ? 0 : prefix->dtype.lanes - 1;
    done[u] = graph.Make(Op::kExtract, u->dtype, {prefix}, {last, 0});
  }
  return done.at(sink);
}

}  // namespace quern
