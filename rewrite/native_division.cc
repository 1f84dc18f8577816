#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "rewrite/divide_index.h"
#include "rewrite/linear.h"
#include "rewrite/native_rule.h"
#include "rewrite/wide_integer.h"

// Quotients and remainders of sums of any length by a constant.

namespace quern {
namespace {

// dividend = divisor·quotient + rest, where `rest` keeps what does not divide.
struct Split {
  LinearForm quotient;
  LinearForm rest;
};

// The constant that is left in the rest is chosen so that the smallest value of the rest lies in
// [0, divisor), if there is one: then a rest that stays in one block is seen at once, and a
// dividend that was not negative does not become so.
bool PlaceConstant(LinearForm& rest, int64_t divisor, BoundsAnalysis& bounds, Wide& moved) {
  const int64_t constant = rest.constant;
  rest.constant = 0;
  const Bounds b = LinearBounds(rest, bounds);
  const Wide low = b.min == INT64_MIN ? 0 : Wide{b.min};
  moved = FloorDivide(low + constant, divisor);
  const Wide left = constant - moved * divisor;
  if (!FitsInt64(left) || !FitsInt64(moved)) return false;
  rest.constant = static_cast<int64_t>(left);
  return true;
}

bool SplitBy(const LinearForm& dividend, int64_t divisor, BoundsAnalysis& bounds, Split& split) {
  split.quotient.lanes = split.rest.lanes = dividend.lanes;
  for (const auto& [term, factor] : dividend.terms) {
    // Rounding to zero keeps the sign of a factor: −x stays −x.
    const int64_t whole = factor / divisor;
    const int64_t left = factor - whole * divisor;
    if (whole != 0) split.quotient.terms.emplace_back(term, whole);
    if (left != 0) split.rest.terms.emplace_back(term, left);
  }
  split.rest.constant = dividend.constant;
  Wide moved;
  if (!PlaceConstant(split.rest, divisor, bounds, moved)) return false;
  split.quotient.constant = static_cast<int64_t>(moved);
  return true;
}

// rest = d·multiple + small with 0 ≤ small < d, for a d > 1 that divides the divisor. The largest
// such d is taken.
bool FactorOut(const LinearForm& rest, int64_t divisor, BoundsAnalysis& bounds, int64_t& d,
               LinearForm& multiple, LinearForm& small) {
  absl::InlinedVector<int64_t, 8> candidates;
  for (const auto& [term, factor] : rest.terms) {
    const int64_t g = std::gcd(factor, divisor);
    if (g > 1) candidates.push_back(g);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (int64_t candidate : candidates) {
    LinearForm in, out;
    in.lanes = out.lanes = rest.lanes;
    for (const auto& [term, factor] : rest.terms) {
      if (factor % candidate == 0) {
        in.terms.emplace_back(term, factor / candidate);
      } else {
        out.terms.emplace_back(term, factor);
      }
    }
    out.constant = rest.constant;
    Wide moved;
    if (!PlaceConstant(out, candidate, bounds, moved)) continue;
    if (!LinearBounds(out, bounds).Within(0, candidate - 1)) continue;
    in.constant = static_cast<int64_t>(moved);
    d = candidate;
    multiple = std::move(in);
    small = std::move(out);
    return true;
  }
  return false;
}

const UOp* FinishSum(LinearForm form, const UOp* last, int64_t factor, UOpGraph& g) {
  if (!AddScaled(form, ToLinear(last), factor)) return nullptr;
  return FromLinear(g, form);
}

const UOp* FloorDivByConst(const UOp* u, const Split& split, RuleContext& context) {
  UOpGraph& g = context.graph;
  const int64_t c = u->src(1)->IntValue();
  if (LinearBounds(split.rest, context.bounds).Within(0, c - 1)) {
    return FromLinear(g, split.quotient);
  }
  auto divided = [&](const LinearForm& rest, int64_t divisor) {
    const UOp* node = FromLinear(g, rest);
    return g.Make(Op::kFloorDiv, node->dtype, {node, ConstLike(g, node, divisor)});
  };
  int64_t d;
  LinearForm multiple, small;
  if (FactorOut(split.rest, c, context.bounds, d, multiple, small)) {
    return FinishSum(split.quotient, divided(multiple, c / d), 1, g);
  }
  if (split.rest.terms.size() == 1 && split.rest.terms[0].second == 1 && split.rest.lanes == 1) {
    const UOp* inner = split.rest.terms[0].first;
    if (IsDivMod(inner) && IsPositiveConst(inner->src(1))) {
      const int64_t m = inner->src(1)->IntValue();
      if (inner->op == Op::kFloorDiv && FitsInt64(Wide{m} * c) &&
          FitsInt64(Wide{m} * split.rest.constant)) {
        // (y div m + k) div c = (y + k·m) div (m·c)
        LinearForm whole = ToLinear(inner->src(0));
        if (!__builtin_add_overflow(whole.constant, m * split.rest.constant, &whole.constant)) {
          return FinishSum(split.quotient, divided(whole, m * c), 1, g);
        }
      }
      if (inner->op == Op::kFloorMod && m % c == 0 && split.rest.constant == 0) {
        // (y mod (c·n)) div c = (y div c) mod n
        const UOp* quotient = g.Make(Op::kFloorDiv, u->dtype, {inner->src(0), u->src(1)});
        const UOp* wrapped =
            g.Make(Op::kFloorMod, u->dtype, {quotient, ConstLike(g, quotient, m / c)});
        return FinishSum(split.quotient, wrapped, 1, g);
      }
    }
  }
  return FinishSum(split.quotient, divided(split.rest, c), 1, g);
}

const UOp* FloorModByConst(const UOp* u, Split& split, RuleContext& context) {
  UOpGraph& g = context.graph;
  const int64_t c = u->src(1)->IntValue();
  if (LinearBounds(split.rest, context.bounds).Within(0, c - 1)) return FromLinear(g, split.rest);
  auto wrapped = [&](const LinearForm& rest, int64_t divisor) {
    const UOp* node = FromLinear(g, rest);
    return g.Make(Op::kFloorMod, node->dtype, {node, ConstLike(g, node, divisor)});
  };
  // An inner remainder by a multiple of the divisor changes nothing.
  for (size_t i = 0; i < split.rest.terms.size(); ++i) {
    auto [term, factor] = split.rest.terms[i];
    if (term->op != Op::kFloorMod || !IsPositiveConst(term->src(1))) continue;
    if (Wide{factor} * term->src(1)->IntValue() % c != 0) continue;
    LinearForm without = split.rest;
    without.terms.erase(without.terms.begin() + static_cast<ptrdiff_t>(i));
    if (AddScaled(without, ToLinear(term->src(0)), factor)) return wrapped(without, c);
  }
  int64_t d;
  LinearForm multiple, small;
  if (FactorOut(split.rest, c, context.bounds, d, multiple, small)) {
    return FinishSum(small, wrapped(multiple, c / d), d, g);
  }
  return wrapped(split.rest, c);
}

}  // namespace

const UOp* DivideIndex(const UOp* u, RuleContext& context) {
  if (!IsIndex(u->dtype) || !u->src(1)->IsConst()) return nullptr;
  const int64_t c = u->src(1)->IntValue();
  const bool is_div = u->op == Op::kFloorDiv;
  UOpGraph& g = context.graph;
  if (c <= 0) {
    if (c == 0) return is_div ? ConstLike(g, u, 0) : u->src(0);
    if (c == INT64_MIN) return nullptr;
    // x div −c = −x div c; x mod −c = −(−x mod c)
    LinearForm negative;
    negative.lanes = u->dtype.lanes;
    if (!AddScaled(negative, ToLinear(u->src(0)), -1)) return nullptr;
    const UOp* dividend = FromLinear(g, negative);
    const UOp* made = g.Make(u->op, u->dtype, {dividend, ConstLike(g, u, -c)});
    return is_div ? made : g.Make(Op::kMul, u->dtype, {made, ConstLike(g, u, -1)});
  }
  const Bounds b = context.bounds.Of(u->src(0));
  if (b.Within(0, c - 1)) return is_div ? ConstLike(g, u, 0) : u->src(0);
  Split split;
  if (!SplitBy(ToLinear(u->src(0)), c, context.bounds, split)) return nullptr;
  const UOp* result =
      is_div ? FloorDivByConst(u, split, context) : FloorModByConst(u, split, context);
  return result == u ? nullptr : result;
}

std::span<const NativeRule> NativeDivisionRules() {
  static const NativeRule rules[] = {
      {"divmod.by_const", OpBit(Op::kFloorDiv) | OpBit(Op::kFloorMod), DivideIndex,
       "splits sums of any length by what the divisor divides"},
  };
  return rules;
}

}  // namespace quern
