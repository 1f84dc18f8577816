#include "codegen/stream_stores.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "codegen/map_statements.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kLineBytes = 64;
// A share of the last cache that one kernel's output may hope to keep.
constexpr int64_t kLeastBytes = int64_t{32} << 20;
constexpr int64_t kCacheShare = 8;

bool IsWholeLines(const UOp* store) {
  const Access access = ReadAccess(store->src(0));
  const int64_t bytes = ByteSize(store->src(1)->dtype.scalar);
  if (access.kind != Access::Kind::kStrided || access.stride != 1) return false;
  if (access.gate_kind != Access::Gate::kNone) return false;
  if (store->src(1)->dtype.lanes * bytes % kLineBytes != 0) return false;
  if (access.base == nullptr) return true;
  const LinearForm form = ToLinear(access.base);
  return form.constant * bytes % kLineBytes == 0 &&
         std::all_of(form.terms.begin(), form.terms.end(),
                     [&](const auto& term) { return term.second * bytes % kLineBytes == 0; });
}

}  // namespace

int64_t StreamBytes(const Target& target) {
  return std::max(kLeastBytes, target.l3_bytes / kCacheShare);
}

const UOp* MarkStreams(UOpGraph& graph, const UOp* sink, int64_t least) {
  absl::flat_hash_set<const UOp*> read;
  bool large = false;
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kLoad) read.insert(u->src(0)->src(0));
    large |= u->op == Op::kParam && u->buffer_size() * ByteSize(u->dtype.scalar) >= least;
  }
  if (!large) return sink;
  return MapStatements(graph, sink, [&](const UOp* u) -> const UOp* {
    if (u->op != Op::kStore) return nullptr;
    const UOp* buffer = u->src(0)->src(0);
    const bool streams = buffer->op == Op::kParam && buffer->slot() < kFirstTemporarySlot &&
                         buffer->buffer_size() * ByteSize(buffer->dtype.scalar) >= least &&
                         !read.contains(buffer) && IsWholeLines(u);
    return streams ? graph.Make(Op::kStore, kVoidType, u->src(), {kStreamFlag, 0}) : nullptr;
  });
}

}  // namespace quern
