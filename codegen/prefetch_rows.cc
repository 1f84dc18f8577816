#include "codegen/prefetch_rows.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "codegen/map_statements.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// Rows are short enough to stay in the first cache from one loop to the next, and long enough that
// the first loop does not fetch the next one by itself.
constexpr int64_t kLeastRow = 1024;
constexpr int64_t kLargestRow = 32 << 10;

// How far one row lies behind the other for a load that reads vectors of a large input; else 0.
int64_t RowElements(const UOp* load, const UOp* rows, int64_t cache_bytes) {
  if (load->op != Op::kLoad || load->dtype.lanes == 1 || load->arg.a != 0) return 0;
  const Access access = ReadAccess(load->src(0));
  if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.base == nullptr) {
    return 0;
  }
  const UOp* buffer = access.buffer;
  if (buffer->op != Op::kParam || buffer->slot() >= kFirstTemporarySlot) return 0;
  const int64_t bytes = ByteSize(load->dtype.scalar);
  if (buffer->buffer_size() * bytes <= cache_bytes) return 0;
  const int64_t elements = ToLinear(access.base).CoefficientOf(rows);
  return elements * bytes >= kLeastRow && elements * bytes <= kLargestRow ? elements : 0;
}

// What a load in `loop` reads, its own loops without their names: two loops that read the same
// places in the same order have equal ones.
std::vector<int64_t> Walk(const UOp* load, const absl::flat_hash_set<const UOp*>& own) {
  const UOp* index = load->src(0);
  const LinearForm form = ToLinear(ReadAccess(index).base);
  std::vector<int64_t> walk = {index->src(0)->slot(), load->dtype.lanes, form.constant};
  for (const auto& [term, coefficient] : form.terms) {
    const bool inside = own.contains(term);
    walk.insert(walk.end(), {coefficient, inside ? 1 : 0, inside ? term->range_size() : term->id});
  }
  return walk;
}

}  // namespace

const UOp* PrefetchRows(UOpGraph& graph, const UOp* sink, int64_t cache_bytes) {
  bool large = false;
  for (const UOp* u : Toposort(sink)) {
    large |= u->op == Op::kParam && u->buffer_size() * ByteSize(u->dtype.scalar) > cache_bytes;
  }
  if (!large) return sink;
  return MapStatements(graph, sink, [&](const UOp* rows) -> const UOp* {
    if (rows->op != Op::kLoop) return nullptr;
    std::set<std::vector<int64_t>> read;     // by loops before
    std::set<std::vector<int64_t>> fetched;  // by one of them
    std::vector<const UOp*> statements;
    bool changed = false;
    for (const UOp* inner : rows->src()) {
      statements.push_back(inner);
      if (inner->op != Op::kLoop) continue;
      absl::flat_hash_set<const UOp*> own;
      const std::vector<const UOp*> order = Toposort(inner);
      for (const UOp* u : order) {
        if (u->op == Op::kLoop) own.insert(u->src(0));
      }
      std::set<std::vector<int64_t>> here;
      std::vector<const UOp*> from;
      std::vector<const UOp*> to;
      for (const UOp* u : order) {
        const int64_t elements = RowElements(u, rows->src(0), cache_bytes);
        if (elements == 0) continue;
        std::vector<int64_t> walk = Walk(u, own);
        if (read.contains(walk) && fetched.insert(walk).second) {
          from.push_back(u);
          to.push_back(graph.Make(Op::kLoad, u->dtype, u->src(), {elements, 0}));
        }
        here.insert(std::move(walk));
      }
      read.merge(here);
      if (from.empty()) continue;
      statements.back() = Substitute(graph, inner, from, to);
      changed = true;
    }
    // (What was done to loops further in is lost then; rows of rows do not both need it.)
    return changed ? graph.Make(Op::kLoop, kVoidType, statements) : nullptr;
  });
}

}  // namespace quern
