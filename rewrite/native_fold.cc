#include "rewrite/fold.h"
#include "rewrite/native_rule.h"

// Constants, intervals and casts.

namespace quern {
namespace {

const UOp* Fold(const UOp* u, RuleContext& context) { return FoldConstant(context.graph, u); }

// A node whose interval is one number is that number.
const UOp* SingleValue(const UOp* u, RuleContext& context) {
  if (IsFloat(u->dtype)) return nullptr;
  const Bounds b = context.bounds.Of(u);
  return b.IsSingle() ? ConstLike(context.graph, u, b.min) : nullptr;
}

// The loop of a range of size 1 is gone with it. (A range that is only *assumed* to have one value
// stays: its loop still names it.)
const UOp* SingleRange(const UOp* u, RuleContext& context) {
  return u->range_size() == 1 ? ConstLike(context.graph, u, 0) : nullptr;
}

// Whether every value of `from` is a value of `to`, so that the cast loses nothing.
bool IsLossless(ScalarType from, ScalarType to) {
  if (from == to) return true;
  if (to == ScalarType::kIndex) return IsInteger(from) || from == ScalarType::kBool;
  if (to == ScalarType::kBool || from == ScalarType::kIndex) return false;
  if (from == ScalarType::kBool) return true;
  const int from_bits = BitWidth(from);
  if (IsFloat(from)) {
    if (!IsFloat(to)) return false;
    return BitWidth(to) > from_bits;  // f16 and bf16 are not contained in one another.
  }
  if (IsFloat(to)) {
    const int digits = to == ScalarType::kF64   ? 53
                       : to == ScalarType::kF32 ? 24
                       : to == ScalarType::kF16 ? 11
                                                : 8;
    return from_bits - (IsSigned(from) ? 1 : 0) <= digits;
  }
  const int to_bits = BitWidth(to);
  if (IsSigned(from)) return IsSigned(to) && to_bits > from_bits;
  return to_bits > from_bits;
}

bool IsIntegral(ScalarType s) {
  return IsInteger(s) || s == ScalarType::kBool || s == ScalarType::kIndex;
}

// cast(cast(x, middle), to) is cast(x, to) if the middle keeps every value that x can have, or if
// both casts only wrap and the middle keeps the bits that are left at the end.
const UOp* CastOfCast(const UOp* u, RuleContext& context) {
  const UOp* inner = u->src(0);
  if (inner->op != Op::kCast) return nullptr;
  const UOp* x = inner->src(0);
  const ScalarType from = x->dtype.scalar;
  const ScalarType middle = inner->dtype.scalar;
  const ScalarType to = u->dtype.scalar;
  bool keeps = IsLossless(from, middle);
  if (IsIntegral(from) && IsIntegral(middle) && IsIntegral(to) && !keeps) {
    const Bounds b = context.bounds.Of(x);
    const Bounds all = TypeBounds(middle);
    const bool real_ends = b.min != INT64_MIN && b.max != INT64_MAX;
    keeps = real_ends && middle != ScalarType::kBool && b.Within(all.min, all.max);
    if (!keeps && IsInteger(middle) && IsInteger(to)) keeps = BitWidth(to) <= BitWidth(middle);
  }
  // A float clamps on its way to an integer where an integer wraps.
  if (IsFloat(middle) && IsIntegral(from) && IsIntegral(to) && to != ScalarType::kBool) {
    keeps = keeps && from != ScalarType::kIndex && IsLossless(from, to);
  }
  if (!keeps) return nullptr;
  if (x->dtype == u->dtype) return x;
  return context.graph.Make(Op::kCast, u->dtype, {x});
}

const UOp* CastToSame(const UOp* u, RuleContext& context) {
  return u->src(0)->dtype == u->dtype ? u->src(0) : nullptr;
}

uint64_t ElementwiseRoots() {
  uint64_t mask = OpBit(Op::kBroadcast);
  for (int i = 0; i < kOpCount; ++i) {
    if (IsElementwise(static_cast<Op>(i))) mask |= OpBit(static_cast<Op>(i));
  }
  return mask;
}

}  // namespace

std::span<const NativeRule> NativeFoldRules() {
  static const NativeRule rules[] = {
      {"const.fold", ElementwiseRoots(), Fold, "evaluates any operation on constants"},
      {"range.single", OpBit(Op::kRange), SingleRange, "reads the size of the loop"},
      {"cast.same", OpBit(Op::kCast) | OpBit(Op::kBitcast), CastToSame, "compares types"},
      {"cast.cast", OpBit(Op::kCast), CastOfCast, "depends on three types and on intervals"},
  };
  return rules;
}

std::span<const NativeRule> NativeBoundsRules() {
  static const NativeRule rules[] = {
      {"bounds.single", ElementwiseRoots(), SingleValue, "asks range analysis for every node"},
  };
  return rules;
}

}  // namespace quern
