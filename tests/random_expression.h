#ifndef QUERN_TESTS_RANDOM_EXPRESSION_H_
#define QUERN_TESTS_RANDOM_EXPRESSION_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "rewrite/build.h"
#include "rewrite/evaluate.h"
#include "rewrite/graph.h"

namespace quern {

/// Random expressions over a few variables, and their values. Index variables are ranges; variables
/// of other types are loads, which the value of a variable is given for.
class RandomExpression {
 public:
  RandomExpression(UOpGraph& g, uint64_t seed) : g_(g), random_(seed) {
    for (int i = 0; i < 4; ++i) {
      static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 28, 64};
      ranges_.push_back(Range(g_, kSizes[Below(11)], i, AxisType::kLoop));
    }
  }

  uint64_t Below(uint64_t n) { return random_() % n; }

  const UOp* Constant(DType type) {
    static constexpr int64_t kIntegers[] = {0, 1,  -1, 2,  3,  4,  5,  7,   8,
                                            9, 12, 16, 20, 28, -2, -4, -29, 256};
    static constexpr double kFloats[] = {0.0, -0.0, 1,  -1,       2,         0.5,
                                         3,   1e30, -7, INFINITY, -INFINITY, NAN};
    if (IsFloat(type)) return FloatConst(g_, type, kFloats[Below(12)]);
    if (IsIndex(type)) return IndexConst(g_, kIntegers[Below(18)]);
    if (IsBool(type)) return BoolConst(g_, Below(2) != 0);
    return IntConst(g_, type, kIntegers[Below(18)]);
  }

  const UOp* Variable(DType type) {
    if (IsIndex(type)) return ranges_[Below(ranges_.size())];
    const int64_t which = static_cast<int64_t>(Below(3));
    const UOp* buffer = Param(g_, type, static_cast<int64_t>(type.scalar), 3);
    return Load(g_, Index(g_, buffer, IndexConst(g_, which)));
  }

  /// An expression of `type`, with operations nested at most `depth` deep.
  const UOp* Make(DType type, int depth) {
    if (depth == 0 || Below(8) == 0) return Below(3) == 0 ? Constant(type) : Variable(type);
    if (Below(12) == 0) {
      return Where(g_, Make(kBoolType, depth - 1), Make(type, depth - 1), Make(type, depth - 1));
    }
    if (IsBool(type)) return MakeBool(depth);
    if (IsFloat(type)) {
      static constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMax, Op::kMin};
      static constexpr Op kUnary[] = {Op::kNeg, Op::kAbs, Op::kFloor};
      if (Below(5) == 0) return Unary(g_, kUnary[Below(3)], Make(type, depth - 1));
      return Binary(g_, kBinary[Below(6)], Make(type, depth - 1), Make(type, depth - 1));
    }
    if (IsIndex(type)) return MakeIndex(depth);
    static constexpr Op kBinary[] = {
        Op::kAdd, Op::kSub, Op::kMul, Op::kFloorDiv, Op::kFloorMod, Op::kTruncDiv, Op::kTruncMod,
        Op::kMax, Op::kMin, Op::kAnd, Op::kOr,       Op::kXor,      Op::kShl,      Op::kShr};
    static constexpr Op kUnary[] = {Op::kNeg, Op::kAbs, Op::kNot};
    if (Below(8) == 0) return Unary(g_, kUnary[Below(3)], Make(type, depth - 1));
    const UOp* right = Below(2) == 0 ? Constant(type) : Make(type, depth - 1);
    return Binary(g_, kBinary[Below(14)], Make(type, depth - 1), right);
  }

  /// A vector expression of `lanes` lanes: lane numbers, broadcasts and what is made of them.
  const UOp* MakeVector(DType type, int lanes, int depth) {
    const DType wide = type.WithLanes(lanes);
    const bool index = IsIndex(type);
    if (depth == 0 || Below(6) == 0) {
      if (index && Below(2) == 0) return g_.Make(Op::kLanes, wide, {});
      return g_.Make(Op::kBroadcast, wide, {Make(type, depth)});
    }
    if (IsBool(type)) {
      const UOp* a = MakeVector(kIndexType, lanes, depth - 1);
      return Binary(g_, Below(2) == 0 ? Op::kLt : Op::kEq, a,
                    MakeVector(kIndexType, lanes, depth - 1));
    }
    if (Below(8) == 0) {
      return Where(g_, MakeVector(kBoolType, lanes, depth - 1), MakeVector(type, lanes, depth - 1),
                   MakeVector(type, lanes, depth - 1));
    }
    static constexpr Op kBinary[] = {Op::kAdd, Op::kMul,      Op::kSub,     Op::kMax,
                                     Op::kMin, Op::kFloorDiv, Op::kFloorMod};
    const UOp* right = Below(2) == 0 ? g_.Make(Op::kConst, wide, {}, Constant(type)->arg)
                                     : MakeVector(type, lanes, depth - 1);
    return Binary(g_, kBinary[Below(index ? 7 : 5)], MakeVector(type, lanes, depth - 1), right);
  }

  const std::vector<const UOp*>& ranges() const { return ranges_; }

  /// A value for every variable: ranges inside their size, loads anything.
  std::vector<Scalar> Assignment(const UOp* root) {
    std::vector<Scalar> values(g_.size());
    for (const UOp* u : Toposort(root)) {
      if (u->op == Op::kRange) {
        values[u->id].i = static_cast<int64_t>(
            Below(static_cast<uint64_t>(std::max<int64_t>(u->range_size(), 1))));
      }
    }
    return values;
  }

 private:
  const UOp* MakeBool(int depth) {
    static constexpr Op kLogic[] = {Op::kAnd, Op::kOr, Op::kXor, Op::kAdd, Op::kMul, Op::kEq};
    static constexpr Op kCompare[] = {Op::kLt, Op::kLe, Op::kEq, Op::kNe};
    if (Below(6) == 0) return Unary(g_, Op::kNot, Make(kBoolType, depth - 1));
    if (Below(3) == 0) {
      return Binary(g_, kLogic[Below(6)], Make(kBoolType, depth - 1), Make(kBoolType, depth - 1));
    }
    static constexpr DType kTypes[] = {
        kIndexType, kIndexType, kI32Type, kI8Type, DType(ScalarType::kU8), kF32Type};
    const DType type = kTypes[Below(6)];
    const UOp* right = Below(2) == 0 ? Constant(type) : Make(type, depth - 1);
    return Binary(g_, kCompare[Below(4)], Make(type, depth - 1), right);
  }

  const UOp* MakeIndex(int depth) {
    static constexpr Op kByConstant[] = {Op::kMul, Op::kFloorDiv, Op::kFloorMod,
                                         Op::kAdd, Op::kTruncDiv, Op::kTruncMod};
    static constexpr Op kBinary[] = {Op::kAdd, Op::kAdd, Op::kAdd,      Op::kSub,     Op::kMax,
                                     Op::kMin, Op::kMul, Op::kFloorDiv, Op::kFloorMod};
    if (Below(3) != 0) {
      return Binary(g_, kByConstant[Below(6)], Make(kIndexType, depth - 1), Constant(kIndexType));
    }
    return Binary(g_, kBinary[Below(9)], Make(kIndexType, depth - 1), Make(kIndexType, depth - 1));
  }

  UOpGraph& g_;
  std::mt19937_64 random_;
  std::vector<const UOp*> ranges_;
};

/// The value of an expression, nullopt if Index arithmetic left 64 bits on the way. Ranges take
/// their value from `assignment` (by id); a load of type t at offset o has the value `memory(t,
/// o)`. Of a vector, the value of one lane.
template <typename Memory>
std::optional<Scalar> ValueOf(const UOp* root, const std::vector<Scalar>& assignment,
                              const Memory& memory, int lane = 0) {
  std::vector<Scalar> values(root->id + 1);
  bool overflow = false;
  for (const UOp* u : Toposort(root)) {
    Scalar& v = values[u->id];
    switch (u->op) {
      case Op::kConst:
        v.i = u->arg.a;
        if (IsFloat(u->dtype)) v.f = u->FloatValue();
        break;
      case Op::kRange:
        v = assignment[u->id];
        break;
      case Op::kLanes:
        v.i = lane;
        break;
      case Op::kBroadcast:
        v = values[u->src(0)->id];
        break;
      case Op::kExtract: {
        const std::optional<Scalar> extracted =
            ValueOf(u->src(0), assignment, memory, static_cast<int>(u->arg.a));
        if (!extracted.has_value()) return std::nullopt;
        v = *extracted;
        break;
      }
      case Op::kParam:
      case Op::kIndex:
        break;
      case Op::kLoad:
        v = memory(u->dtype.scalar, values[u->src(0)->src(1)->id].i);
        break;
      default: {
        Scalar sources[3];
        for (size_t i = 0; i < u->source_count; ++i) sources[i] = values[u->src(i)->id];
        const ScalarType from = u->src(u->source_count - 1)->dtype.scalar;
        v = Evaluate(u->op, from, u->dtype.scalar, sources, &overflow);
      }
    }
  }
  if (overflow) return std::nullopt;
  return values[root->id];
}

/// Equal values; any NaN equals any other, zeros differ by sign.
inline bool SameValue(ScalarType type, Scalar a, Scalar b) {
  if (!IsFloat(type)) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  return a.f == b.f && std::signbit(a.f) == std::signbit(b.f);
}

}  // namespace quern

#endif  // QUERN_TESTS_RANDOM_EXPRESSION_H_
