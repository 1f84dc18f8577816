#include "optimizer/row_groups.h"

#include <algorithm>

namespace quern {

bool MultipliesRows(const RangeSets& sets, const StatementAccesses& reduce, const UOp* rows) {
  constexpr int64_t kLeastDepth = 16;
  if (reduce.node->op != Op::kReduce) return false;
  int64_t depth = 1;
  for (const UOp* r : reduce.node->src().subspan(1)) depth *= r->range_size();
  bool changes = false;
  bool stays = false;
  for (const UOp* load : reduce.loads) (sets.Depends(load, rows) ? changes : stays) = true;
  return depth >= kLeastDepth && changes && stays;
}

const UOp* RowsOfGroup(const UOp* kernel, const RangeSets& sets,
                       const std::vector<const UOp*>& shared) {
  const UOp* rows = nullptr;
  for (const StatementAccesses& statement : CollectAccesses(kernel)) {
    for (const UOp* r : shared) {
      if (!MultipliesRows(sets, statement, r)) continue;
      if (rows == nullptr || r->range_size() > rows->range_size()) rows = r;
    }
  }
  return rows;
}

int64_t SharedOperandBytes(const UOp* kernel, const RangeSets& sets,
                           const std::vector<const UOp*>& shared, const UOp* rows) {
  int64_t bytes = 0;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op != Op::kLoad || u->src(0)->src(0)->op != Op::kParam || sets.Depends(u, rows)) {
      continue;
    }
    int64_t elements = 1;
    for (const UOp* r : sets.Members(sets.Of(u))) {
      const bool outer = std::find(shared.begin(), shared.end(), r) != shared.end();
      if (!outer) elements *= r->range_size();
    }
    bytes += elements * ByteSize(u->dtype.scalar);
  }
  return bytes;
}

}  // namespace quern
