#include "rewrite/build.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace quern {

const UOp* IndexConst(UOpGraph& g, int64_t value) {
  return g.Make(Op::kConst, kIndexType, {}, {value, 0});
}

const UOp* IntConst(UOpGraph& g, DType dtype, int64_t value) {
  QUERN_CHECK(IsInteger(dtype) || IsBool(dtype));
  return g.Make(Op::kConst, dtype, {}, {WrapInteger(dtype.scalar, value), 0});
}

const UOp* FloatConst(UOpGraph& g, DType dtype, double value) {
  QUERN_CHECK(IsFloat(dtype));
  double rounded = RoundFloat(dtype.scalar, value);
  // One NaN, so that equal constants are one node.
  if (std::isnan(rounded)) rounded = std::numeric_limits<double>::quiet_NaN();
  return g.Make(Op::kConst, dtype, {}, {std::bit_cast<int64_t>(rounded), 0});
}

const UOp* NumberConst(UOpGraph& g, DType dtype, double value) {
  if (IsFloat(dtype)) return FloatConst(g, dtype, value);
  if (IsIndex(dtype)) {
    return g.Make(Op::kConst, dtype, {}, {static_cast<int64_t>(value), 0});
  }
  return IntConst(g, dtype, static_cast<int64_t>(value));
}

const UOp* BoolConst(UOpGraph& g, bool value) { return IntConst(g, kBoolType, value ? 1 : 0); }

const UOp* Param(UOpGraph& g, DType dtype, int64_t slot, int64_t elements) {
  return g.Make(Op::kParam, dtype, {}, {slot, elements});
}
const UOp* Scratch(UOpGraph& g, DType dtype, int64_t slot, int64_t elements) {
  return g.Make(Op::kScratch, dtype, {}, {slot, elements});
}
const UOp* Register(UOpGraph& g, DType dtype, int64_t slot, int64_t elements) {
  return g.Make(Op::kRegister, dtype, {}, {slot, elements});
}

const UOp* Range(UOpGraph& g, int64_t size, int axis, AxisType type) {
  QUERN_CHECK(size >= 0 && axis >= 0);
  return g.Make(Op::kRange, kIndexType, {}, RangeArg(size, axis, type));
}

const UOp* Index(UOpGraph& g, const UOp* buffer, const UOp* offset, const UOp* gate) {
  QUERN_CHECK(IsBuffer(buffer->op) && (IsIndex(offset->dtype) || IsInteger(offset->dtype)));
  const DType dtype = buffer->dtype.WithLanes(offset->dtype.lanes);
  if (gate == nullptr) return g.Make(Op::kIndex, dtype, {buffer, offset});
  QUERN_CHECK(IsBool(gate->dtype));
  return g.Make(Op::kIndex, dtype, {buffer, offset, gate});
}

const UOp* Load(UOpGraph& g, const UOp* index) {
  QUERN_CHECK(index->op == Op::kIndex);
  return g.Make(Op::kLoad, index->dtype, {index});
}

const UOp* Store(UOpGraph& g, const UOp* index, const UOp* value) {
  QUERN_CHECK(index->op == Op::kIndex && index->dtype == value->dtype);
  return g.Make(Op::kStore, kVoidType, {index, value});
}

const UOp* Reduce(UOpGraph& g, Op op, const UOp* value, std::span<const UOp* const> ranges) {
  QUERN_CHECK(op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin);
  std::vector<const UOp*> sources = {value};
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return g.Make(Op::kReduce, value->dtype, sources, {static_cast<int64_t>(op), 0});
}

const UOp* Sink(UOpGraph& g, std::span<const UOp* const> statements) {
  return g.Make(Op::kSink, kVoidType, statements);
}

const UOp* Unary(UOpGraph& g, Op op, const UOp* x) { return g.Make(op, x->dtype, {x}); }

const UOp* Binary(UOpGraph& g, Op op, const UOp* a, const UOp* b) {
  QUERN_CHECK(a->dtype == b->dtype);
  const DType dtype = GetOpInfo(op).comparison ? kBoolType.WithLanes(a->dtype.lanes) : a->dtype;
  return g.Make(op, dtype, {a, b});
}

const UOp* Where(UOpGraph& g, const UOp* condition, const UOp* if_true, const UOp* if_false) {
  QUERN_CHECK(IsBool(condition->dtype) && if_true->dtype == if_false->dtype);
  return g.Make(Op::kWhere, if_true->dtype, {condition, if_true, if_false});
}

const UOp* Cast(UOpGraph& g, const UOp* x, DType to) {
  to = to.WithLanes(x->dtype.lanes);
  return x->dtype == to ? x : g.Make(Op::kCast, to, {x});
}

const UOp* ReduceIdentity(UOpGraph& g, Op op, DType dtype) {
  QUERN_CHECK(op == Op::kAdd || op == Op::kMul || op == Op::kMax || op == Op::kMin);
  if (op == Op::kAdd) return NumberConst(g, dtype, 0);
  if (op == Op::kMul) return NumberConst(g, dtype, 1);
  if (IsFloat(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return FloatConst(g, dtype, op == Op::kMax ? -infinity : infinity);
  }
  QUERN_CHECK(!IsIndex(dtype));
  return IntConst(g, dtype, op == Op::kMax ? MinInteger(dtype.scalar) : MaxInteger(dtype.scalar));
}

}  // namespace quern
