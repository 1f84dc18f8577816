#include "codegen/prefetch_sums.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/access.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// The load of what `store` adds to, if it has one and the next iteration of the loop over `range`
// has another place for it; `elements` says how far away.
const UOp* FindSum(const UOp* store, const UOp* range, int64_t cache_bytes, int64_t& elements) {
  const UOp* index = store->src(0);
  const UOp* buffer = index->src(0);
  if (buffer->op == Op::kRegister) return nullptr;
  const int64_t bytes = ByteSize(buffer->dtype.scalar);
  if (buffer->buffer_size() * bytes <= cache_bytes) return nullptr;
  const Access access = ReadAccess(index);
  if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.base == nullptr) {
    return nullptr;
  }
  elements = ToLinear(access.base).CoefficientOf(range);
  if (elements == 0) return nullptr;
  for (const UOp* u : store->src(1)->src()) {
    if (u->op == Op::kLoad && u->arg.a == 0 && u->src(0)->src(0) == buffer &&
        u->src(0)->src(1) == index->src(1)) {
      return u;
    }
  }
  return nullptr;
}

// `statement`, a store or a block of them, with the loads marked.
const UOp* MarkSums(UOpGraph& graph, const UOp* statement, const UOp* range, int64_t cache_bytes) {
  if (statement->op == Op::kBlock) {
    std::vector<const UOp*> statements;
    for (const UOp* s : statement->src()) {
      statements.push_back(s->op == Op::kLoop ? s : MarkSums(graph, s, range, cache_bytes));
    }
    return WithSources(graph, statement, statements);
  }
  if (statement->op != Op::kStore) return statement;
  int64_t elements = 0;
  const UOp* sum = FindSum(statement, range, cache_bytes, elements);
  if (sum == nullptr) return statement;
  const UOp* ahead = graph.Make(Op::kLoad, sum->dtype, sum->src(), {elements, sum->arg.b});
  return Substitute(graph, statement, {{sum}}, {{ahead}});
}

}  // namespace

const UOp* PrefetchSums(UOpGraph& graph, const UOp* sink, int64_t cache_bytes) {
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(sink)) {
    if (!GetOpInfo(u->op).statement) continue;
    sources.clear();
    bool computes = false;  // Something takes long enough for memory to answer.
    for (const UOp* s : u->src()) {
      const auto found = done.find(s);  // Ranges and values are no statements.
      const UOp* statement = found == done.end() ? s : found->second;
      if (u->op == Op::kLoop && computes) {
        statement = MarkSums(graph, statement, u->src(0), cache_bytes);
      }
      sources.push_back(statement);
      computes |= s->op == Op::kLoop;
    }
    done[u] = WithSources(graph, u, sources);
  }
  return done.at(sink);
}

}  // namespace quern
