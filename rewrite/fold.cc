#include "rewrite/fold.h"

#include <bit>
#include <cmath>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "rewrite/evaluate.h"

namespace quern {
namespace {

uint64_t Bits(std::initializer_list<Op> ops) {
  uint64_t mask = 0;
  for (Op op : ops) mask |= OpBit(op);
  return mask;
}

// Whether the operation is defined on sources of this type at all.
bool IsDefined(Op op, ScalarType type) {
  static const uint64_t kAnyType =
      Bits({Op::kWhere, Op::kLt, Op::kLe, Op::kEq, Op::kNe, Op::kCast, Op::kBitcast});
  static const uint64_t kBools =
      Bits({Op::kAdd, Op::kMul, Op::kMax, Op::kMin, Op::kAnd, Op::kOr, Op::kXor, Op::kNot});
  static const uint64_t kIndexes =
      kBools | Bits({Op::kSub, Op::kNeg, Op::kAbs, Op::kMulAdd, Op::kFloorDiv, Op::kFloorMod,
                     Op::kTruncDiv, Op::kTruncMod});
  static const uint64_t kIntegers = kIndexes | Bits({Op::kShl, Op::kShr});
  static const uint64_t kFloats =
      Bits({Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMax, Op::kMin, Op::kMulAdd, Op::kNeg,
            Op::kAbs, Op::kFloor, Op::kSqrt, Op::kExp, Op::kExp2, Op::kLog, Op::kLog2, Op::kSin,
            Op::kTanh, Op::kErf});
  uint64_t defined = kAnyType;
  if (type == ScalarType::kBool) defined |= kBools;
  if (type == ScalarType::kIndex) defined |= kIndexes;
  if (IsInteger(type)) defined |= kIntegers;
  if (IsFloat(type)) defined |= kFloats;
  return (defined & OpBit(op)) != 0;
}

}  // namespace

std::optional<int64_t> EvaluateConstant(Op op, ScalarType result, ScalarType source,
                                        std::span<const int64_t> args) {
  if (!IsDefined(op, source)) return std::nullopt;
  // A u64 that Index cannot hold, and bits that are no number.
  if (result == ScalarType::kIndex && op == Op::kCast) {
    if (source == ScalarType::kU64 && args[0] < 0) return std::nullopt;
    if (IsFloat(source) && !(std::fabs(std::bit_cast<double>(args[0])) < 0x1p63)) {
      return std::nullopt;
    }
  }
  absl::InlinedVector<Scalar, 3> scalars;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_condition = op == Op::kWhere && i == 0;
    Scalar s;
    if (IsFloat(source) && !is_condition) {
      s.f = std::bit_cast<double>(args[i]);
    } else {
      s.i = args[i];
    }
    scalars.push_back(s);
  }
  bool overflow = false;
  const Scalar value = Evaluate(op, source, result, scalars.data(), &overflow);
  if (overflow) return std::nullopt;
  if (!IsFloat(result)) return value.i;
  // One NaN, so that equal constants are one node.
  return std::bit_cast<int64_t>(std::isnan(value.f) ? std::numeric_limits<double>::quiet_NaN()
                                                    : value.f);
}

const UOp* FoldConstant(UOpGraph& g, const UOp* u) {
  if (u->child_mask != OpBit(Op::kConst)) return nullptr;
  if (u->op == Op::kBroadcast) return g.Make(Op::kConst, u->dtype, {}, u->src(0)->arg);
  if (!IsElementwise(u->op)) return nullptr;
  absl::InlinedVector<int64_t, 3> args;
  for (const UOp* s : u->src()) args.push_back(s->arg.a);
  std::optional<int64_t> bits =
      EvaluateConstant(u->op, u->dtype.scalar, u->src(u->source_count - 1)->dtype.scalar, args);
  if (!bits.has_value()) return nullptr;
  return g.Make(Op::kConst, u->dtype, {}, {*bits, 0});
}

}  // namespace quern
