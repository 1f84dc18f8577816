#include "codegen/access.h"

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

}  // namespace

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
