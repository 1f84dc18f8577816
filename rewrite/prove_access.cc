#include "rewrite/prove_access.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "rewrite/linear.h"

namespace quern {
namespace {

// `a < b`, `a ≤ b` or `a = b`, read from a gate; a negated comparison is turned round.
struct Comparison {
  Op op;
  const UOp* a;
  const UOp* b;
};

// The comparisons that are all true when `gate` is; `*never` if it is constantly false.
std::vector<Comparison> ReadGate(const UOp* gate, bool* never) {
  std::vector<Comparison> found;
  std::vector<const UOp*> todo = {gate};
  while (!todo.empty()) {
    const UOp* u = todo.back();
    todo.pop_back();
    const bool negated = u->op == Op::kNot;
    if (negated) u = u->src(0);
    if (u->op == Op::kBroadcast) {
      if (!negated) todo.push_back(u->src(0));
    } else if (u->IsConst()) {
      if ((u->IntValue() != 0) == negated) *never = true;
    } else if (u->op == Op::kAnd || (u->op == Op::kMul && IsBool(u->dtype))) {
      if (!negated) todo.insert(todo.end(), u->src().begin(), u->src().end());
    } else if (GetOpInfo(u->op).comparison && IsIndex(u->src(0)->dtype)) {
      const UOp* a = u->src(0);
      const UOp* b = u->src(1);
      if (u->op == Op::kLt) {
        found.push_back(negated ? Comparison{Op::kLe, b, a} : Comparison{Op::kLt, a, b});
      } else if (u->op == Op::kLe) {
        found.push_back(negated ? Comparison{Op::kLt, b, a} : Comparison{Op::kLe, a, b});
      } else if ((u->op == Op::kEq) != negated) {
        found.push_back({Op::kEq, a, b});
      }
    }
  }
  return found;
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

// What a comparison says about its sides as they stand, for offsets in which they occur unchanged
// below a division.
void AssumeSides(const Comparison& c, BoundsAnalysis& bounds) {
  const Bounds a = bounds.Of(c.a);
  const Bounds b = bounds.Of(c.b);
  const int gap = c.op == Op::kLt ? 1 : 0;
  Bounds of_a{INT64_MIN, b.max == INT64_MAX ? b.max : SaturatingAdd(b.max, -gap)};
  Bounds of_b{a.min == INT64_MIN ? a.min : SaturatingAdd(a.min, gap), INT64_MAX};
  if (c.op == Op::kEq) {
    of_a.min = b.min;
    of_b.max = a.max;
  }
  if (!c.a->IsConst()) bounds.Assume(c.a, of_a);
  if (!c.b->IsConst()) bounds.Assume(c.b, of_b);
}

// The constant that is in every lane, if `u` is one.
std::optional<int64_t> SameConstant(const UOp* u) {
  if (u->op == Op::kBroadcast) u = u->src(0);
  if (!u->IsConst()) return std::nullopt;
  return u->IntValue();
}

// ToLinear, also through products of a vector with the same constant in each lane.
LinearForm VectorLinear(const UOp* index) {
  LinearForm form = ToLinear(index);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto [term, coefficient] : form.terms) {
      if (term->op != Op::kMul || term->dtype.lanes == 1) continue;
      const int side = SameConstant(term->src(1)).has_value() ? 1 : 0;
      const std::optional<int64_t> factor = SameConstant(term->src(side));
      int64_t product = 0;
      if (!factor.has_value() || __builtin_mul_overflow(*factor, coefficient, &product)) continue;
      LinearForm sum = form;
      LinearForm whole;
      whole.terms = {{term, 1}};
      if (!AddScaled(sum, whole, -coefficient)) continue;
      if (!AddScaled(sum, ToLinear(term->src(1 - side)), product)) continue;
      form = sum;
      changed = true;
      break;
    }
  }
  return form;
}

// Linear forms that are ≥ 0 when the comparison is true.
void AddSlacks(const Comparison& c, std::vector<LinearForm>& slacks) {
  LinearForm slack = VectorLinear(c.b);
  if (!AddScaled(slack, VectorLinear(c.a), -1)) return;
  if (c.op == Op::kLt) --slack.constant;
  slacks.push_back(slack);
  if (c.op != Op::kEq) return;
  LinearForm other = VectorLinear(c.a);
  if (AddScaled(other, VectorLinear(c.b), -1)) slacks.push_back(other);
}

// A quotient q = x floordiv c lies between its neighbours: x − c·q ≥ 0 and c·q + c − 1 − x ≥ 0.
struct Quotient {
  const UOp* node;
  LinearForm below;  // x − c·q
  LinearForm above;  // c·q + c − 1 − x
};

// The quotients in `form`, and those in their dividends.
std::vector<Quotient> FindQuotients(const LinearForm& form, BoundsAnalysis& bounds) {
  std::vector<Quotient> found;
  std::vector<LinearForm> todo = {form};
  while (!todo.empty() && found.size() < 8) {
    const LinearForm next = todo.back();
    todo.pop_back();
    for (const auto& [term, coefficient] : next.terms) {
      if (term->op != Op::kFloorDiv && term->op != Op::kTruncDiv) continue;
      const std::optional<int64_t> divisor = SameConstant(term->src(1));
      if (!divisor.has_value() || *divisor <= 0) continue;
      if (term->op == Op::kTruncDiv && bounds.Of(term->src(0)).min < 0) continue;
      Quotient q{term, VectorLinear(term->src(0)), {}};
      todo.push_back(q.below);
      LinearForm self;
      self.terms = {{term, 1}};
      self.lanes = term->dtype.lanes;
      if (!AddScaled(q.below, self, -*divisor) || !AddScaled(q.above, q.below, -1)) continue;
      q.above.constant += *divisor - 1;
      found.push_back(std::move(q));
    }
  }
  return found;
}

// A form that is at least `scale` times the one whose bound is sought.
struct ScaledForm {
  LinearForm form;
  int64_t scale = 1;

  int64_t Max(BoundsAnalysis& bounds) const {
    const int64_t max = LinearBounds(form, bounds).max;
    if (max == INT64_MAX || max == INT64_MIN) return max;
    return max >= 0 ? max / scale : -((-max + scale - 1) / scale);
  }
};

// Adds the multiple of `slack` that takes `term` out of the form; nullopt if it is no addition.
std::optional<ScaledForm> Eliminate(const ScaledForm& from, const LinearForm& slack,
                                    const UOp* term) {
  const int64_t have = from.form.CoefficientOf(term);
  const int64_t coefficient = slack.CoefficientOf(term);
  if (have == 0 || coefficient == 0 || (have < 0) == (coefficient < 0) || have == INT64_MIN ||
      coefficient == INT64_MIN) {
    return std::nullopt;
  }
  const int64_t common = std::gcd(have, coefficient);
  const int64_t stretch = std::abs(coefficient) / common;
  ScaledForm sum;
  if (__builtin_mul_overflow(from.scale, stretch, &sum.scale) ||
      !AddScaled(sum.form, from.form, stretch) ||
      !AddScaled(sum.form, slack, std::abs(have) / common)) {
    return std::nullopt;
  }
  return sum;
}

// The least upper bound that is found by adding multiples of the slacks, one term out at a time.
// Each addition only makes the form larger, so every bound on the way is true; the greedy choice is
// not the best in general, but gates come from padding and from uneven splits, where one multiple
// each is all.
int64_t GreedyBound(ScaledForm form, const std::vector<LinearForm>& slacks,
                    BoundsAnalysis& bounds) {
  int64_t best = form.Max(bounds);
  for (size_t round = 0; round < 2 * slacks.size(); ++round) {
    std::optional<ScaledForm> better;
    for (const LinearForm& slack : slacks) {
      for (const auto& [term, coefficient] : slack.terms) {
        std::optional<ScaledForm> sum = Eliminate(form, slack, term);
        if (!sum.has_value()) continue;
        const int64_t bound = sum->Max(bounds);
        if (bound >= best) continue;
        best = bound;
        better = std::move(sum);
      }
    }
    if (!better.has_value()) break;
    form = *std::move(better);
  }
  return best;
}

// The form as it stands, and with its quotients written as what is divided: what a gate says of
// 5·i + j is of no use to 2·i + (i + j) floordiv 2 otherwise.
int64_t BoundOfSum(const LinearForm& sum, const std::vector<LinearForm>& slacks,
                   BoundsAnalysis& bounds) {
  ScaledForm form{sum};
  const int64_t plain = GreedyBound(form, slacks, bounds);
  for (const Quotient& q : FindQuotients(sum, bounds)) {
    for (const LinearForm& slack : {q.below, q.above}) {
      if (std::optional<ScaledForm> next = Eliminate(form, slack, q.node)) form = *std::move(next);
    }
  }
  return form.scale == 1 ? plain : std::min(plain, GreedyBound(form, slacks, bounds));
}

// Also bounds what is multiplied by one stride on its own: it is an integer, so its bound may be
// rounded down before it is multiplied.
int64_t UpperBound(const LinearForm& offset, const std::vector<LinearForm>& slacks,
                   BoundsAnalysis& bounds) {
  if (slacks.empty()) return LinearBounds(offset, bounds).max;
  int64_t best = BoundOfSum(offset, slacks, bounds);
  for (const auto& [stride_term, coefficient] : offset.terms) {
    const int64_t stride = coefficient == INT64_MIN ? 1 : std::abs(coefficient);
    if (stride == 1) continue;
    LinearForm multiples;
    LinearForm rest;
    multiples.lanes = rest.lanes = offset.lanes;
    rest.constant = offset.constant;
    for (const auto& [term, factor] : offset.terms) {
      if (factor % stride == 0) {
        multiples.terms.emplace_back(term, factor / stride);
      } else {
        rest.terms.emplace_back(term, factor);
      }
    }
    // One range alone has no other bound than its own.
    if (multiples.terms.size() == 1 && multiples.terms[0].first->op == Op::kRange) continue;
    const int64_t a = BoundOfSum(multiples, slacks, bounds);
    const int64_t b = BoundOfSum(rest, slacks, bounds);
    int64_t sum = 0;
    if (a == INT64_MAX || b == INT64_MAX || __builtin_mul_overflow(a, stride, &sum) ||
        __builtin_add_overflow(sum, b, &sum)) {
      continue;
    }
    best = std::min(best, sum);
  }
  return best;
}

}  // namespace

std::optional<Bounds> BoundsUnderGate(const LinearForm& offset, const UOp* gate) {
  BoundsAnalysis bounds;
  std::vector<LinearForm> slacks;
  if (gate != nullptr) {
    bool never = false;
    const std::vector<Comparison> comparisons = ReadGate(gate, &never);
    if (never) return std::nullopt;
    for (const Comparison& c : comparisons) AddSlacks(c, slacks);
    for (const Comparison& c : comparisons) AssumeSides(c, bounds);
    for (const LinearForm& slack : slacks) {
      if (LinearBounds(slack, bounds).max < 0) return std::nullopt;
    }
  }
  // Comparisons that contradict one another leave intervals that are upside down.
  for (const auto& [term, coefficient] : offset.terms) {
    const Bounds b = bounds.Of(term);
    if (b.min > b.max) return std::nullopt;
  }
  const int64_t max = UpperBound(offset, slacks, bounds);
  LinearForm negative;
  negative.lanes = offset.lanes;
  if (!AddScaled(negative, offset, -1)) return Bounds{INT64_MIN, max};
  const int64_t below = UpperBound(negative, slacks, bounds);
  return Bounds{below == INT64_MAX || below == INT64_MIN ? INT64_MIN : -below, max};
}

std::optional<Bounds> AccessBounds(const UOp* index) {
  QUERN_CHECK(index->op == Op::kIndex && IsIndex(index->src(1)->dtype));
  return BoundsUnderGate(VectorLinear(index->src(1)),
                         index->source_count == 3 ? index->src(2) : nullptr);
}

bool ProveAccess(const UOp* index) {
  const std::optional<Bounds> offset = AccessBounds(index);
  return !offset.has_value() || offset->Within(0, index->src(0)->buffer_size() - 1);
}

}  // namespace quern
