#include "rewrite/bounds.h"

#include <algorithm>
#include <bit>

#include "rewrite/wide_integer.h"

namespace quern {
namespace {

struct WideBounds {
  Wide min;
  Wide max;
};

WideBounds Widen(Bounds b) { return {b.min, b.max}; }

WideBounds Hull(WideBounds a, WideBounds b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

// Index saturates. A fixed-width result that can leave its type may wrap to anything.
Bounds Finish(ScalarType type, WideBounds b) {
  const Bounds all = TypeBounds(type);
  if (type == ScalarType::kIndex || type == ScalarType::kBool) {
    return {static_cast<int64_t>(std::clamp<Wide>(b.min, all.min, all.max)),
            static_cast<int64_t>(std::clamp<Wide>(b.max, all.min, all.max))};
  }
  if (b.min < all.min || b.max > all.max) return all;
  return {static_cast<int64_t>(b.min), static_cast<int64_t>(b.max)};
}

WideBounds Product(Bounds a, Bounds b) {
  const Wide corners[] = {Wide{a.min} * b.min, Wide{a.min} * b.max, Wide{a.max} * b.min,
                          Wide{a.max} * b.max};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

// A quotient is monotone in each argument while the other is fixed and the divisor keeps its sign,
// so the corners of each sign's rectangle are enough. Division by zero gives 0.
WideBounds Quotient(Bounds a, Bounds b, bool floor) {
  bool any = false;
  WideBounds result = {0, 0};
  auto add = [&](Wide q) {
    result = any ? Hull(result, {q, q}) : WideBounds{q, q};
    any = true;
  };
  auto add_divisors = [&](int64_t low, int64_t high) {
    if (low > high) return;
    for (Wide x : {Wide{a.min}, Wide{a.max}}) {
      for (Wide y : {Wide{low}, Wide{high}}) add(floor ? FloorDivide(x, y) : x / y);
    }
  };
  add_divisors(b.min, std::min<int64_t>(b.max, -1));
  add_divisors(std::max<int64_t>(b.min, 1), b.max);
  if (b.min <= 0 && b.max >= 0) add(0);
  return result;
}

WideBounds FloorRemainder(Bounds a, Bounds b) {
  if (b == Bounds{0, 0}) return Widen(a);
  if (b.min == b.max && b.min > 0) {
    // All dividends inside one block: the remainder only shifts.
    const Wide q = FloorDivide(a.min, b.min);
    if (q == FloorDivide(a.max, b.min)) return {a.min - q * b.min, a.max - q * b.min};
  }
  WideBounds result = {0, 0};
  if (b.max > 0) result.max = Wide{b.max} - 1;
  if (b.min < 0) result.min = Wide{b.min} + 1;
  // With both non-negative the remainder is no larger than the dividend.
  if (a.min >= 0 && b.min > 0) result.max = std::min<Wide>(result.max, a.max);
  // x mod 0 is x.
  if (b.min <= 0 && b.max >= 0) result = Hull(result, Widen(a));
  return result;
}

WideBounds TruncRemainder(Bounds a, Bounds b) {
  if (a.min >= 0 && b.min > 0) return FloorRemainder(a, b);
  if (b.min <= 0 && b.max >= 0) return Hull(Widen(a), {0, 0});
  const Wide largest = std::max<Wide>(b.max < 0 ? -Wide{b.max} : Wide{b.max},
                                      b.min < 0 ? -Wide{b.min} : Wide{b.min}) -
                       1;
  return {a.min < 0 ? std::max<Wide>(a.min, -largest) : Wide{0},
          a.max > 0 ? std::min<Wide>(a.max, largest) : Wide{0}};
}

// 2^k − 1, the smallest such number that is ≥ x.
int64_t AllOnesAbove(int64_t x) {
  return x <= 0
             ? 0
             : static_cast<int64_t>((uint64_t{1} << std::bit_width(static_cast<uint64_t>(x))) - 1);
}

Bounds Bitwise(Op op, Bounds a, Bounds b, Bounds all) {
  if (op == Op::kAnd) {
    if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
    if (a.min >= 0) return {0, a.max};
    if (b.min >= 0) return {0, b.max};
    return all;
  }
  if (a.min < 0 || b.min < 0) return all;
  return {op == Op::kOr ? std::max(a.min, b.min) : 0, AllOnesAbove(std::max(a.max, b.max))};
}

Bounds Logical(Op op, Bounds a, Bounds b) {
  if (op == Op::kAnd) return {a.min & b.min, a.max & b.max};
  if (op == Op::kOr) return {a.min | b.min, a.max | b.max};
  return a.IsSingle() && b.IsSingle() ? Bounds{a.min ^ b.min, a.min ^ b.min} : Bounds{0, 1};
}

// INT64_MAX may stand for a larger u64, so equality with it decides nothing.
bool SurelyLess(Bounds a, Bounds b) { return a.max < b.min; }
bool SurelyNotMore(Bounds a, Bounds b) { return a.max <= b.min && a.max != INT64_MAX; }

Bounds Compared(Op op, Bounds a, Bounds b) {
  switch (op) {
    case Op::kLt:
      if (SurelyLess(a, b)) return {1, 1};
      if (SurelyNotMore(b, a)) return {0, 0};
      break;
    case Op::kLe:
      if (SurelyNotMore(a, b)) return {1, 1};
      if (SurelyLess(b, a)) return {0, 0};
      break;
    default: {
      const int64_t equal = op == Op::kEq ? 1 : 0;
      if (a.IsSingle() && a == b) return {equal, equal};
      if (SurelyLess(a, b) || SurelyLess(b, a)) return {1 - equal, 1 - equal};
      break;
    }
  }
  return {0, 1};
}

bool IsUnboundedU64(const UOp* u, Bounds b) {
  return u->dtype.scalar == ScalarType::kU64 && b.max == INT64_MAX;
}

}  // namespace

Bounds TypeBounds(ScalarType type) {
  if (type == ScalarType::kU64) return {0, INT64_MAX};
  if (IsInteger(type) || type == ScalarType::kBool) return {MinInteger(type), MaxInteger(type)};
  return {};
}

Bounds BoundsAnalysis::Compute(const UOp* u) const {
  const ScalarType type = u->dtype.scalar;
  const Bounds all = TypeBounds(type);
  if (!IsInteger(type) && type != ScalarType::kBool && type != ScalarType::kIndex) return all;

  auto of = [&](size_t i) { return Known(u->src(i)); };
  switch (u->op) {
    case Op::kConst:
      if (type == ScalarType::kU64 && u->arg.a < 0) return {INT64_MAX, INT64_MAX};
      return {u->arg.a, u->arg.a};
    case Op::kRange:
      return {0, std::max<int64_t>(u->range_size() - 1, 0)};
    case Op::kLanes:
      return {0, u->dtype.lanes - 1};
    case Op::kBroadcast:
    case Op::kExtract:
    case Op::kStage:
      return of(0);
    case Op::kWhere: {
      const Bounds condition = of(0);
      if (condition.IsSingle()) return of(condition.min != 0 ? 1 : 2);
      return {std::min(of(1).min, of(2).min), std::max(of(1).max, of(2).max)};
    }
    case Op::kMax:
      return {std::max(of(0).min, of(1).min), std::max(of(0).max, of(1).max)};
    case Op::kMin:
      return {std::min(of(0).min, of(1).min), std::min(of(0).max, of(1).max)};
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe:
      if (IsFloat(u->src(0)->dtype)) return all;
      return Compared(u->op, of(0), of(1));
    case Op::kReduce:
    case Op::kHorizontal:
      // Largest and smallest are among the values, unless there are none.
      if (u->reduce_op() != Op::kMax && u->reduce_op() != Op::kMin) return all;
      for (size_t i = 1; i < u->source_count; ++i) {
        if (u->src(i)->op == Op::kRange && u->src(i)->range_size() == 0) return all;
      }
      return of(0);
    default:
      break;
  }
  if (!IsElementwise(u->op)) return all;
  // Beyond INT64_MAX nothing is known of a u64, so nothing can be derived from one.
  for (const UOp* s : u->src()) {
    if (IsUnboundedU64(s, Known(s)) && u->op != Op::kAnd) return all;
  }
  const bool is_bool = type == ScalarType::kBool;
  switch (u->op) {
    case Op::kAdd:
      if (is_bool) return Logical(Op::kOr, of(0), of(1));
      return Finish(type, {Wide{of(0).min} + of(1).min, Wide{of(0).max} + of(1).max});
    case Op::kSub:
      if (is_bool) return all;
      return Finish(type, {Wide{of(0).min} - of(1).max, Wide{of(0).max} - of(1).min});
    case Op::kMul:
      if (is_bool) return Logical(Op::kAnd, of(0), of(1));
      return Finish(type, Product(of(0), of(1)));
    case Op::kMulAdd: {
      if (is_bool) return all;
      const WideBounds product = Product(of(0), of(1));
      return Finish(type, {product.min + of(2).min, product.max + of(2).max});
    }
    case Op::kNeg:
      if (is_bool) return all;
      return Finish(type, {-Wide{of(0).max}, -Wide{of(0).min}});
    case Op::kAbs: {
      const Wide low = of(0).min;
      const Wide high = of(0).max;
      if (low >= 0) return of(0);
      return Finish(type, {high <= 0 ? -high : Wide{0}, std::max(-low, high)});
    }
    case Op::kFloorDiv:
      return is_bool ? all : Finish(type, Quotient(of(0), of(1), /*floor=*/true));
    case Op::kTruncDiv:
      return is_bool ? all : Finish(type, Quotient(of(0), of(1), /*floor=*/false));
    case Op::kFloorMod:
      return is_bool ? all : Finish(type, FloorRemainder(of(0), of(1)));
    case Op::kTruncMod:
      return is_bool ? all : Finish(type, TruncRemainder(of(0), of(1)));
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return is_bool ? Logical(u->op, of(0), of(1)) : Bitwise(u->op, of(0), of(1), all);
    case Op::kShl:
    case Op::kShr: {
      if (!IsInteger(type) || !of(1).IsSingle()) return all;
      const int amount = static_cast<int>(of(1).min & (BitWidth(type) - 1));
      if (u->op == Op::kShr) return {of(0).min >> amount, of(0).max >> amount};
      const Wide factor = Wide{1} << amount;
      return Finish(type, {of(0).min * factor, of(0).max * factor});
    }
    case Op::kNot:
      if (is_bool) return {1 - of(0).max, 1 - of(0).min};
      if (IsUnsigned(type))
        return type == ScalarType::kU64 ? all : Bounds{all.max - of(0).max, all.max - of(0).min};
      return {~of(0).max, ~of(0).min};
    case Op::kCast: {
      if (IsFloat(u->src(0)->dtype)) return all;
      const Bounds b = of(0);
      if (!is_bool) return Finish(type, Widen(b));
      if (b.min > 0 || b.max < 0) return {1, 1};
      return b == Bounds{0, 0} ? b : all;
    }
    default:
      return all;
  }
}

Bounds BoundsAnalysis::Of(const UOp* u) {
  if (u->id < known_.size() && known_[u->id]) return bounds_[u->id];
  if (u->id >= known_.size()) {
    const size_t size = std::max<size_t>(u->id + 1, known_.size() * 2);
    known_.resize(size, 0);
    bounds_.resize(size);
  }
  // Sources have smaller ids, so the arrays are large enough for everything below `u`.
  stack_.push_back(u);
  while (!stack_.empty()) {
    const UOp* top = stack_.back();
    if (known_[top->id]) {
      stack_.pop_back();
      continue;
    }
    const size_t before = stack_.size();
    const bool looks_at_sources = top->op != Op::kLoad && top->op != Op::kIndex &&
                                  top->op != Op::kConst && top->op != Op::kRange;
    if (looks_at_sources) {
      for (const UOp* s : top->src()) {
        if (!known_[s->id]) stack_.push_back(s);
      }
    }
    if (stack_.size() != before) continue;
    Bounds b = Compute(top);
    for (const auto& [node, narrower] : assumed_) {
      if (node == top) b = {std::max(b.min, narrower.min), std::min(b.max, narrower.max)};
    }
    bounds_[top->id] = b;
    known_[top->id] = 1;
    stack_.pop_back();
  }
  return bounds_[u->id];
}

void BoundsAnalysis::Assume(const UOp* u, Bounds bounds) {
  assumed_.emplace_back(u, bounds);
  std::fill(known_.begin(), known_.end(), 0);
}

}  // namespace quern
