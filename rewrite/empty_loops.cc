#include "rewrite/empty_loops.h"

#include "absl/container/flat_hash_map.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

bool NeverRuns(const RangeSets& sets, const UOp* statement) {
  if (statement->op == Op::kLoop) return statement->src(0)->range_size() == 0;
  if (statement->op != Op::kStore) return false;
  for (const UOp* r : sets.Members(sets.Of(statement))) {
    if (r->range_size() == 0) return true;
  }
  return false;
}

}  // namespace

const UOp* DropEmptyLoops(UOpGraph& graph, const UOp* root) {
  if (root->op != Op::kSink) return root;
  const std::vector<const UOp*> order = Toposort(root);
  bool any = false;
  for (const UOp* u : order) any |= u->op == Op::kRange && u->range_size() == 0;
  if (!any) return root;
  const RangeSets sets(root);
  absl::flat_hash_map<const UOp*, const UOp*> done;  // statements; nullptr: dropped
  std::vector<const UOp*> sources;
  for (const UOp* u : order) {
    if (!GetOpInfo(u->op).statement) continue;
    if (NeverRuns(sets, u)) {
      done[u] = nullptr;
      continue;
    }
    sources.clear();
    for (const UOp* s : u->src()) {
      auto found = done.find(s);
      if (found == done.end()) {
        sources.push_back(s);
      } else if (found->second != nullptr) {
        sources.push_back(found->second);
      }
    }
    const bool empty_loop = u->op == Op::kLoop && sources.size() == 1;
    done[u] = empty_loop ? nullptr : WithSources(graph, u, sources);
  }
  return done.at(root);
}

}  // namespace quern
