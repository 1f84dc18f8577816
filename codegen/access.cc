#include "codegen/access.h"

#include "rewrite/build.h"

namespace quern {
namespace {

// Reads `lanes` or `lanes * broadcast(constant)`; 0 if it is neither.
int64_t LaneStride(const UOp* u) {
  if (u->op == Op::kLanes) return 1;
  if (u->op != Op::kMul || u->src(0)->op != Op::kLanes) return 0;
  const UOp* factor = u->src(1);
  if (factor->op == Op::kBroadcast) factor = factor->src(0);
  return factor->IsConst() ? factor->IntValue() : 0;
}

// Reads `lanes // columns · stride + lanes % columns`.
bool ReadTile(const UOp* u, Access& access) {
  if (u->op != Op::kAdd || u->src(0)->op != Op::kMul || u->src(1)->op != Op::kFloorMod)
    return false;
  const UOp* rows = u->src(0)->src(0);
  const UOp* stride = u->src(0)->src(1);
  const UOp* columns = u->src(1)->src(1);
  if (rows->op != Op::kFloorDiv || rows->src(0)->op != Op::kLanes || rows->src(1) != columns ||
      u->src(1)->src(0) != rows->src(0)) {
    return false;
  }
  for (const UOp* constant : {stride, columns}) {
    if (constant->op != Op::kBroadcast || !constant->src(0)->IsConst()) return false;
  }
  access.kind = Access::Kind::kTile;
  access.stride = stride->src(0)->IntValue();
  access.columns = columns->src(0)->IntValue();
  return true;
}

}  // namespace

const UOp* TileOffsets(UOpGraph& g, const UOp* base, int rows, int64_t stride, int columns) {
  const DType type = kIndexType.WithLanes(rows * columns);
  const auto all = [&](const UOp* scalar) { return g.Make(Op::kBroadcast, type, {scalar}); };
  const UOp* lanes = g.Make(Op::kLanes, type, {});
  const UOp* width = all(IndexConst(g, columns));
  const UOp* down = Mul(g, Binary(g, Op::kFloorDiv, lanes, width), all(IndexConst(g, stride)));
  return Add(g, all(base), Add(g, down, Binary(g, Op::kFloorMod, lanes, width)));
}

Access ReadAccess(const UOp* index) {
  QUERN_CHECK(index->op == Op::kIndex);
  Access access;
  access.buffer = index->src(0);
  access.offset = index->src(1);
  const UOp* offset = access.offset;
  if (offset->dtype.lanes == 1) {
    access.kind = Access::Kind::kScalar;
    access.base = offset;
  } else if (offset->op == Op::kBroadcast) {
    access.kind = Access::Kind::kSame;
    access.base = offset->src(0);
  } else if (const int64_t stride = LaneStride(offset); stride != 0) {
    access.kind = Access::Kind::kStrided;
    access.stride = stride;
  } else {
    access.kind = Access::Kind::kGather;
    if (offset->op == Op::kAdd) {
      for (int side = 0; side < 2; ++side) {
        const UOp* scalar = offset->src(side);
        const int64_t lane_stride = LaneStride(offset->src(1 - side));
        if (scalar->op == Op::kBroadcast && lane_stride != 0) {
          access.kind = Access::Kind::kStrided;
          access.base = scalar->src(0);
          access.stride = lane_stride;
        }
      }
      const UOp* first = offset->src(0);
      if (first->op == Op::kBroadcast && ReadTile(offset->src(1), access)) {
        access.base = first->src(0);
      }
    }
  }
  if (index->source_count == 3) {
    access.gate = index->src(2);
    access.gate_kind = Access::Gate::kLanes;
    if (access.gate->op == Op::kBroadcast) access.gate = access.gate->src(0);
    if (access.gate->dtype.lanes == 1) access.gate_kind = Access::Gate::kScalar;
  }
  return access;
}

std::pair<const UOp*, int64_t> SplitBase(const UOp* base) {
  if (base == nullptr) return {nullptr, 0};
  if (base->IsConst()) return {nullptr, base->IntValue()};
  if (base->op == Op::kAdd && base->src(1)->IsConst()) {
    return {base->src(0), base->src(1)->IntValue()};
  }
  return {base, 0};
}

}  // namespace quern
