#include "codegen/map_statements.h"

#include <vector>

#include "absl/container/flat_hash_map.h"

namespace quern {

const UOp* MapStatements(UOpGraph& graph, const UOp* sink,
                         const std::function<const UOp*(const UOp*)>& map) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(sink)) {
    if (!GetOpInfo(u->op).statement) continue;
    if (const UOp* mapped = map(u)) {
      done[u] = mapped;
      continue;
    }
    sources.clear();
    for (const UOp* s : u->src()) {
      auto found = done.find(s);  // Ranges and values are no statements.
      sources.push_back(found == done.end() ? s : found->second);
    }
    done[u] = WithSources(graph, u, sources);
  }
  return done.at(sink);
}

}  // namespace quern
