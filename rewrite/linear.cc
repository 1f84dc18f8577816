#include "rewrite/linear.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "rewrite/build.h"
#include "rewrite/wide_integer.h"

namespace quern {
namespace {

// Sums in normal form are short; a hand-made one that shares subexpressions could have
// exponentially many paths. Beyond this many steps, subexpressions are left as terms.
constexpr int kMaxSteps = 4096;
// How much of a term is looked at to find the loops it depends on.
constexpr int kMaxOrderNodes = 24;
constexpr int kLanesAxis = 1 << 30;

const UOp* VectorConst(UOpGraph& g, int64_t value, int lanes) {
  return g.Make(Op::kConst, DType(ScalarType::kIndex, lanes), {}, {value, 0});
}

const UOp* Scaled(UOpGraph& g, const UOp* term, int64_t factor) {
  if (factor == 1) return term;
  return g.Make(Op::kMul, term->dtype, {term, VectorConst(g, factor, term->dtype.lanes)});
}

// Sorts by the normal order, adds up equal terms and drops those that vanish.
bool Normalize(std::vector<std::pair<const UOp*, int64_t>>& terms) {
  if (terms.size() == 2) {
    // The usual case needs no keys in memory.
    if (terms[0].first != terms[1].first) {
      if (OrderOfTerm(terms[1].first) < OrderOfTerm(terms[0].first)) std::swap(terms[0], terms[1]);
    }
  } else if (terms.size() > 2) {
    absl::InlinedVector<std::pair<TermOrder, int>, 16> keys;
    for (size_t i = 0; i < terms.size(); ++i) {
      keys.emplace_back(OrderOfTerm(terms[i].first), static_cast<int>(i));
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::pair<const UOp*, int64_t>> sorted;
    sorted.reserve(terms.size());
    for (const auto& [key, i] : keys) sorted.push_back(terms[i]);
    terms = std::move(sorted);
  }
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    auto [term, coefficient] = terms[i];
    for (++i; i < terms.size() && terms[i].first == term; ++i) {
      if (__builtin_add_overflow(coefficient, terms[i].second, &coefficient)) return false;
    }
    if (coefficient != 0) terms[kept++] = {term, coefficient};
  }
  terms.resize(kept);
  return true;
}

}  // namespace

TermOrder OrderOfTerm(const UOp* term) {
  if (term->op == Op::kRange) return {term->range_axis(), term->hash};
  TermOrder order = {term->dtype.lanes > 1 ? kLanesAxis : -1, term->hash};
  if (term->op == Op::kLanes) return order;
  absl::InlinedVector<const UOp*, kMaxOrderNodes + 8> todo = {term};
  for (size_t i = 0; i < todo.size() && i < kMaxOrderNodes; ++i) {
    const UOp* u = todo[i];
    if (u->op == Op::kRange) {
      order.axis = std::max(order.axis, u->range_axis());
    } else if (u->source_count <= 4) {
      todo.insert(todo.end(), u->src().begin(), u->src().end());
    }
  }
  return order;
}

int64_t LinearForm::CoefficientOf(const UOp* term) const {
  for (const auto& [t, c] : terms) {
    if (t == term) return c;
  }
  return 0;
}

LinearForm ToLinear(const UOp* index) {
  LinearForm form;
  form.lanes = index->dtype.lanes;
  absl::InlinedVector<std::pair<const UOp*, int64_t>, 16> todo = {{index, 1}};
  int steps = 0;
  bool fits = true;
  while (!todo.empty() && fits) {
    auto [u, factor] = todo.back();
    todo.pop_back();
    if (++steps > kMaxSteps) {
      form.terms.emplace_back(u, factor);
      continue;
    }
    int64_t product;
    switch (u->op) {
      case Op::kConst:
        fits = !__builtin_mul_overflow(u->arg.a, factor, &product) &&
               !__builtin_add_overflow(form.constant, product, &form.constant);
        continue;
      case Op::kAdd:
        todo.emplace_back(u->src(1), factor);
        todo.emplace_back(u->src(0), factor);
        continue;
      case Op::kSub:
        if (factor == INT64_MIN) break;
        todo.emplace_back(u->src(1), -factor);
        todo.emplace_back(u->src(0), factor);
        continue;
      case Op::kNeg:
        if (factor == INT64_MIN) break;
        todo.emplace_back(u->src(0), -factor);
        continue;
      case Op::kBroadcast:
        todo.emplace_back(u->src(0), factor);
        continue;
      case Op::kMul: {
        const bool right = u->src(1)->IsConst();
        if (!right && !u->src(0)->IsConst()) break;
        const int64_t c = u->src(right ? 1 : 0)->IntValue();
        if (__builtin_mul_overflow(c, factor, &product)) break;
        if (product != 0) todo.emplace_back(u->src(right ? 0 : 1), product);
        continue;
      }
      default:
        break;
    }
    form.terms.emplace_back(u, factor);
  }
  if (fits && Normalize(form.terms)) return form;
  // Numbers left 64 bits on the way: the whole expression is one term.
  LinearForm whole;
  whole.lanes = form.lanes;
  whole.terms.emplace_back(index, 1);
  return whole;
}

const UOp* FromLinear(UOpGraph& g, const LinearForm& form) {
  const UOp* sum = nullptr;
  auto add = [&](const UOp* term) {
    sum = sum == nullptr ? term : g.Make(Op::kAdd, sum->dtype, {sum, term});
  };
  for (const auto& [term, factor] : form.terms) {
    if (term->dtype.lanes == 1) add(Scaled(g, term, factor));
  }
  if (form.lanes == 1) {
    if (form.constant != 0 || sum == nullptr) add(IndexConst(g, form.constant));
    return sum;
  }
  // The scalar part is one broadcast (with the constant, if there is anything to add it to).
  const bool has_scalar = sum != nullptr;
  if (has_scalar) {
    if (form.constant != 0) add(IndexConst(g, form.constant));
    sum = g.Make(Op::kBroadcast, sum->dtype.WithLanes(form.lanes), {sum});
  }
  for (const auto& [term, factor] : form.terms) {
    if (term->dtype.lanes != 1) add(Scaled(g, term, factor));
  }
  if (sum == nullptr || (!has_scalar && form.constant != 0)) {
    add(VectorConst(g, form.constant, form.lanes));
  }
  return sum;
}

bool AddScaled(LinearForm& a, const LinearForm& b, int64_t factor) {
  int64_t product;
  for (const auto& [term, c] : b.terms) {
    if (__builtin_mul_overflow(c, factor, &product)) return false;
    a.terms.emplace_back(term, product);
  }
  if (__builtin_mul_overflow(b.constant, factor, &product) ||
      __builtin_add_overflow(a.constant, product, &a.constant)) {
    return false;
  }
  a.lanes = std::max(a.lanes, b.lanes);
  return Normalize(a.terms);
}

Bounds LinearBounds(const LinearForm& form, BoundsAnalysis& bounds) {
  Wide low = form.constant;
  Wide high = form.constant;
  for (const auto& [term, factor] : form.terms) {
    const Bounds b = bounds.Of(term);
    // 2^126 at most per term; a few dozen could overflow, so keep the sums clamped.
    const Wide x = Wide{b.min} * factor;
    const Wide y = Wide{b.max} * factor;
    constexpr Wide kLimit = Wide{1} << 100;
    low =
        std::clamp<Wide>(low + std::clamp<Wide>(std::min(x, y), -kLimit, kLimit), -kLimit, kLimit);
    high =
        std::clamp<Wide>(high + std::clamp<Wide>(std::max(x, y), -kLimit, kLimit), -kLimit, kLimit);
  }
  return {static_cast<int64_t>(std::clamp<Wide>(low, INT64_MIN, INT64_MAX)),
          static_cast<int64_t>(std::clamp<Wide>(high, INT64_MIN, INT64_MAX))};
}

}  // namespace quern
