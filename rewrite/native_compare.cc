#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "rewrite/linear.h"
#include "rewrite/native_rule.h"
#include "rewrite/wide_integer.h"

// Comparisons of Index expressions of any length.

namespace quern {
namespace {

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
    bound = CeilDivide(bound, common);  // d·x < b is x < ⌈b/d⌉
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
    const Wide least = CeilDivide(bound - small.max, d);
    if (least != CeilDivide(bound - small.min, d)) continue;
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
    const int64_t common = std::max<int64_t>(1, TermsGcd(form));  // 0 if no terms are left
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
  if (!FitsInt64(bound) || !FitsInt64(-bound)) return nullptr;
  const int64_t sign = form.terms[0].second < 0 ? -1 : 1;
  const UOp* terms = TermsOnly(g, form, sign);
  const UOp* constant = ConstLike(g, terms, static_cast<int64_t>(bound * sign));
  const UOp* result = less && sign < 0
                          ? g.Make(Op::kLt, u->dtype, {constant, terms})
                          : g.Make(less ? Op::kLt : u->op, u->dtype, {terms, constant});
  return result == u ? nullptr : result;
}

}  // namespace

std::span<const NativeRule> NativeCompareRules() {
  static const NativeRule rules[] = {
      {"compare.normal", OpBit(Op::kLt) | OpBit(Op::kLe) | OpBit(Op::kEq) | OpBit(Op::kNe),
       CompareNormal, "collects both sides, of any length, in one sum"},
  };
  return rules;
}

}  // namespace quern
