#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/native_rule.h"

// Index arithmetic over sums of any length. A table row sees two or three terms; these functions do
// for n terms what the rows of rules_index.cc state for one.

namespace quern {
namespace {

using Wide = __int128;

const UOp* ConstLike(UOpGraph& g, const UOp* like, int64_t value) {
  return g.Make(Op::kConst, like->dtype, {}, {value, 0});
}

Wide FloorDivide(Wide a, Wide b) {
  const Wide q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

bool Fits(Wide x) { return x >= INT64_MIN && x <= INT64_MAX; }

// The factor and the term of one summand of a normal sum.
const UOp* TermOf(const UOp* summand) {
  return summand->op == Op::kMul && summand->src(1)->IsConst() ? summand->src(0) : summand;
}

bool IsDivMod(const UOp* u) { return u->op == Op::kFloorDiv || u->op == Op::kFloorMod; }

// A sum whose left part is already normal is normal as a whole if its last term comes after all
// others and cannot join one of them. This decides most nodes without building a linear form.
bool IsNormalSum(const UOp* u) {
  const UOp* left = u->src(0);
  const UOp* right = u->src(1);
  if (left->IsConst() || u->dtype.lanes != 1) return false;
  if (right->IsConst()) {
    return right->IntValue() != 0 && !(left->op == Op::kAdd && left->src(1)->IsConst());
  }
  const UOp* term = TermOf(right);
  if (term->op == Op::kAdd || IsDivMod(term)) return false;
  const UOp* last = left->op == Op::kAdd ? left->src(1) : left;
  if (last->IsConst()) return false;
  return OrderOfTerm(TermOf(last)) < OrderOfTerm(term);
}

bool IsNormalProduct(const UOp* u) {
  if (u->src(0)->IsConst()) return false;
  if (!u->src(1)->IsConst()) {
    if (u->src(1)->op == Op::kMul) return true;  // A row turns it to the left.
    const UOp* last = u->src(0)->op == Op::kMul ? u->src(0)->src(1) : u->src(0);
    return last->IsConst() || !(OrderOfTerm(u->src(1)) < OrderOfTerm(last));
  }
  const int64_t factor = u->src(1)->IntValue();
  const UOp* term = u->src(0);
  if (factor == 0 || factor == 1 || term->op == Op::kAdd || term->op == Op::kBroadcast)
    return false;
  return !(term->op == Op::kMul && term->src(1)->IsConst());
}

const UOp* DivModByConst(const UOp* u, RuleContext& context);

// The normal spelling of z floordiv c.
const UOp* Quotient(const UOp* z, const UOp* c, RuleContext& context) {
  const UOp* u = context.graph.Make(Op::kFloorDiv, z->dtype, {z, c});
  const UOp* better = DivModByConst(u, context);
  return better == nullptr ? u : better;
}

bool IsPositiveConst(const UOp* u) { return u->IsConst() && u->IntValue() > 0; }

// Finds k·c·(z floordiv c) + k·(z floormod c) among the terms and puts k·z in their place; also
// k·c·((z floordiv c) floormod m) + k·(z floormod c), which is k·(z floormod (c·m)).
bool Recombine(LinearForm& form, RuleContext& context) {
  for (size_t i = 0; i < form.terms.size(); ++i) {
    auto [remainder, k] = form.terms[i];
    if (remainder->op != Op::kFloorMod || !IsPositiveConst(remainder->src(1))) continue;
    const UOp* z = remainder->src(0);
    const int64_t c = remainder->src(1)->IntValue();
    const UOp* quotient = nullptr;
    for (size_t j = 0; j < form.terms.size(); ++j) {
      auto [other, other_factor] = form.terms[j];
      if (j == i || !IsDivMod(other) || Wide{k} * c != other_factor) continue;
      if (quotient == nullptr) quotient = Quotient(z, remainder->src(1), context);
      const UOp* joined = nullptr;
      if (other == quotient) {
        joined = z;
      } else if (other->op == Op::kFloorMod && other->src(0) == quotient &&
                 IsPositiveConst(other->src(1)) && Fits(Wide{c} * other->src(1)->IntValue())) {
        joined =
            context.graph.Make(Op::kFloorMod, z->dtype,
                               {z, ConstLike(context.graph, z, c * other->src(1)->IntValue())});
      }
      if (joined == nullptr) continue;
      form.terms.erase(form.terms.begin() + static_cast<ptrdiff_t>(std::max(i, j)));
      form.terms.erase(form.terms.begin() + static_cast<ptrdiff_t>(std::min(i, j)));
      return AddScaled(form, ToLinear(joined), k);
    }
  }
  return false;
}

const UOp* AffineNormal(const UOp* u, RuleContext& context) {
  if (!IsIndex(u->dtype)) return nullptr;
  if (u->op == Op::kAdd && IsNormalSum(u)) return nullptr;
  if (u->op == Op::kMul) {
    if (IsNormalProduct(u)) return nullptr;
    const UOp* left = u->src(0);
    const UOp* right = u->src(1);
    UOpGraph& g = context.graph;
    if (!left->IsConst() && !right->IsConst()) {
      if (left->op != Op::kMul) return g.Make(Op::kMul, u->dtype, {right, left});
      return g.Make(Op::kMul, u->dtype,
                    {g.Make(Op::kMul, u->dtype, {left->src(0), right}), left->src(1)});
    }
  }
  LinearForm form = ToLinear(u);
  while (form.terms.size() > 1) {
    LinearForm joined = form;
    if (!Recombine(joined, context)) break;
    form = std::move(joined);
  }
  const UOp* normal = FromLinear(context.graph, form);
  return normal == u ? nullptr : normal;
}

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
  if (!Fits(left) || !Fits(moved)) return false;
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
      if (inner->op == Op::kFloorDiv && Fits(Wide{m} * c) && Fits(Wide{m} * split.rest.constant)) {
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

const UOp* DivModByConst(const UOp* u, RuleContext& context) {
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

// Σ factor·term as "left", with the constant on the other side.
const UOp* TermsOnly(UOpGraph& g, LinearForm form, int64_t sign) {
  form.constant = 0;
  for (auto& [term, factor] : form.terms) factor *= sign;
  return FromLinear(g, form);
}

int64_t TermsGcd(const LinearForm& form) {
  int64_t d = 0;
  for (const auto& [term, factor] : form.terms) d = std::gcd(d, factor);
  return d;
}

const UOp* BoolLike(UOpGraph& g, const UOp* u, bool value) {
  return g.Make(Op::kConst, u->dtype, {}, {value ? 1 : 0, 0});
}

// terms < bound, where the terms can be divided by d up to a part in [0, d) that cannot decide.
bool DivideLess(LinearForm& terms, Wide& bound, BoundsAnalysis& bounds) {
  const int64_t common = TermsGcd(terms);
  if (common > 1) {
    for (auto& [term, factor] : terms.terms) factor /= common;
    bound = -FloorDivide(-bound, common);  // d·x < b is x < ⌈b/d⌉
    return true;
  }
  for (const auto& [unused, candidate_factor] : terms.terms) {
    const int64_t d = std::abs(candidate_factor);
    if (d <= 1) continue;
    LinearForm in, out;
    in.lanes = out.lanes = terms.lanes;
    for (const auto& [term, factor] : terms.terms) {
      if (factor % d == 0) {
        in.terms.emplace_back(term, factor / d);
      } else {
        out.terms.emplace_back(term, factor);
      }
    }
    // d·x + s < b with s in [0, r], r < d: the same as x < ⌈(b − s)/d⌉ for every s if that is one
    // number.
    const Bounds small = LinearBounds(out, bounds);
    if (small.min == INT64_MIN || small.max == INT64_MAX) continue;
    const Wide least = -FloorDivide(-(bound - small.max), d);
    if (least != -FloorDivide(-(bound - small.min), d)) continue;
    terms = std::move(in);
    bound = least;
    return true;
  }
  return false;
}

const UOp* CompareNormal(const UOp* u, RuleContext& context) {
  if (!IsIndex(u->src(0)->dtype)) return nullptr;
  UOpGraph& g = context.graph;
  LinearForm form = ToLinear(u->src(0));
  if (!AddScaled(form, ToLinear(u->src(1)), -1)) return nullptr;
  if (u->op == Op::kLe && __builtin_sub_overflow(form.constant, 1, &form.constant)) return nullptr;
  const Bounds b = LinearBounds(form, context.bounds);
  const bool less = u->op == Op::kLt || u->op == Op::kLe;
  if (less) {
    if (b.max < 0) return BoolLike(g, u, true);
    if (b.min >= 0) return BoolLike(g, u, false);
  } else {
    if (b.min == 0 && b.max == 0) return BoolLike(g, u, u->op == Op::kEq);
    if (b.min > 0 || b.max < 0) return BoolLike(g, u, u->op == Op::kNe);
  }
  // terms < bound, or terms == bound.
  Wide bound = -Wide{form.constant};
  form.constant = 0;
  for (const auto& [term, factor] : form.terms) {
    if (factor == INT64_MIN) return nullptr;
  }
  if (less) {
    while (DivideLess(form, bound, context.bounds)) {
    }
  } else {
    const int64_t common = TermsGcd(form);
    if (bound % common != 0) return BoolLike(g, u, u->op == Op::kNe);
    for (auto& [term, factor] : form.terms) factor /= common;
    bound /= common;
  }
  if (form.terms.empty())
    return BoolLike(g, u, less ? 0 < bound : (bound == 0) == (u->op == Op::kEq));
  // Two things that are compared with each other keep their sides.
  if (form.terms.size() == 2 && bound == 0 && form.lanes == 1 &&
      std::abs(form.terms[0].second) == 1 && form.terms[0].second == -form.terms[1].second) {
    const bool swap = less && form.terms[0].second < 0;
    const UOp* result = g.Make(less ? Op::kLt : u->op, u->dtype,
                               {form.terms[swap ? 1 : 0].first, form.terms[swap ? 0 : 1].first});
    return result == u ? nullptr : result;
  }
  if (!Fits(bound) || !Fits(-bound)) return nullptr;
  const int64_t sign = form.terms[0].second < 0 ? -1 : 1;
  const UOp* terms = TermsOnly(g, form, sign);
  const UOp* constant = ConstLike(g, terms, static_cast<int64_t>(bound * sign));
  const UOp* result = less && sign < 0
                          ? g.Make(Op::kLt, u->dtype, {constant, terms})
                          : g.Make(less ? Op::kLt : u->op, u->dtype, {terms, constant});
  return result == u ? nullptr : result;
}

}  // namespace

std::span<const NativeRule> NativeIndexRules() {
  static const NativeRule rules[] = {
      {"affine.normal", OpBit(Op::kAdd) | OpBit(Op::kSub) | OpBit(Op::kMul) | OpBit(Op::kNeg),
       AffineNormal, "sorts and joins sums of any length"},
      {"divmod.by_const", OpBit(Op::kFloorDiv) | OpBit(Op::kFloorMod), DivModByConst,
       "splits sums of any length by what the divisor divides"},
      {"compare.normal", OpBit(Op::kLt) | OpBit(Op::kLe) | OpBit(Op::kEq) | OpBit(Op::kNe),
       CompareNormal, "collects both sides, of any length, in one sum"},
  };
  return rules;
}

}  // namespace quern
