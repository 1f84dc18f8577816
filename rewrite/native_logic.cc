#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "rewrite/fold.h"
#include "rewrite/linear.h"
#include "rewrite/native_rule.h"

// Chains of and, or, max and min: associative, commutative and idempotent operations, except on
// floats (zeros of both signs).

namespace quern {
namespace {

constexpr size_t kMaxClauses = 1 << 14;

// `terms < bound` or `bound < terms` on Index, the normal spellings of a comparison.
struct Half {
  const UOp* terms = nullptr;
  int64_t bound = 0;
  bool upper = false;
};

Half HalfOf(const UOp* u) {
  if (u->op != Op::kLt || !IsIndex(u->src(0)->dtype)) return {};
  if (u->src(1)->IsConst()) return {u->src(0), u->src(1)->IntValue(), true};
  if (u->src(0)->IsConst()) return {u->src(1), u->src(0)->IntValue(), false};
  return {};
}

bool IsNegation(const UOp* a, const UOp* b) {
  return (a->op == Op::kNot && a->src(0) == b) || (b->op == Op::kNot && b->src(0) == a);
}

// What two clauses are together: one of them, a constant, or nullptr for "both are needed".
const UOp* Joined(UOpGraph& g, Op op, const UOp* a, const UOp* b) {
  if (a == b) return a;
  if (!IsBool(a->dtype) || (op != Op::kAnd && op != Op::kOr)) return nullptr;
  const bool is_and = op == Op::kAnd;
  if (IsNegation(a, b)) return ConstLike(g, a, is_and ? 0 : 1);
  const Half x = HalfOf(a);
  const Half y = HalfOf(b);
  if (x.terms == nullptr || x.terms != y.terms) return nullptr;
  if (x.upper == y.upper) {
    // The stricter one for and, the weaker one for or.
    const bool x_is_stricter = x.upper ? x.bound <= y.bound : x.bound >= y.bound;
    return x_is_stricter == is_and ? a : b;
  }
  const int64_t high = x.upper ? x.bound : y.bound;  // terms < high
  const int64_t low = x.upper ? y.bound : x.bound;   // low < terms
  if (is_and && (low == INT64_MAX || high <= low + 1)) return ConstLike(g, a, 0);
  if (!is_and && low < high) return ConstLike(g, a, 1);
  return nullptr;
}

// A left-leaning chain in normal order whose last clause comes after all others.
bool MayBeNormal(const UOp* u) {
  const UOp* left = u->src(0);
  const UOp* right = u->src(1);
  if (left->IsConst() || right->IsConst() || right->op == u->op) return false;
  const UOp* last = left->op == u->op ? left->src(1) : left;
  return OrderOfTerm(last) < OrderOfTerm(right);
}

const UOp* ChainNormal(const UOp* u, RuleContext& context) {
  if (IsFloat(u->dtype)) return nullptr;
  UOpGraph& g = context.graph;
  absl::InlinedVector<const UOp*, 16> todo = {u};
  absl::InlinedVector<const UOp*, 16> clauses;
  absl::flat_hash_set<const UOp*> seen;
  const UOp* constant = nullptr;
  while (!todo.empty()) {
    const UOp* c = todo.back();
    todo.pop_back();
    if (c->op == u->op && seen.size() < kMaxClauses) {
      if (!seen.insert(c).second) continue;  // Idempotent: once is enough.
      todo.push_back(c->src(1));
      todo.push_back(c->src(0));
    } else if (c->IsConst()) {
      const int64_t args[] = {constant == nullptr ? c->arg.a : constant->arg.a, c->arg.a};
      constant = ConstLike(g, u, *EvaluateConstant(u->op, u->dtype.scalar, u->dtype.scalar, args));
    } else if (seen.insert(c).second) {
      clauses.push_back(c);
    }
  }
  if (constant != nullptr && IsBool(u->dtype)) {
    const bool absorbs = (constant->IntValue() != 0) == (u->op == Op::kOr);
    if (absorbs) return constant;
    constant = nullptr;
  }
  if (clauses.size() > 1) {
    absl::InlinedVector<std::pair<TermOrder, const UOp*>, 16> keys;
    for (const UOp* clause : clauses) keys.emplace_back(OrderOfTerm(clause), clause);
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < keys.size(); ++i) clauses[i] = keys[i].second;
  }
  // Clauses about the same terms decide one another; there are few that survive.
  size_t kept = 0;
  for (const UOp* clause : clauses) {
    bool merged = false;
    for (size_t i = 0; i < kept && !merged; ++i) {
      if (clauses[i]->op != clause->op && clause->op != Op::kNot && clauses[i]->op != Op::kNot) {
        continue;
      }
      const UOp* both = Joined(g, u->op, clauses[i], clause);
      if (both == nullptr) continue;
      if (both->IsConst()) return both;
      clauses[i] = both;
      merged = true;
    }
    if (!merged) clauses[kept++] = clause;
  }
  clauses.resize(kept);
  const UOp* result = nullptr;
  for (const UOp* clause : clauses) {
    result = result == nullptr ? clause : g.Make(u->op, u->dtype, {result, clause});
  }
  if (constant != nullptr || result == nullptr) {
    if (constant == nullptr) constant = ConstLike(g, u, u->op == Op::kAnd ? 1 : 0);
    result = result == nullptr ? constant : g.Make(u->op, u->dtype, {result, constant});
  }
  return result == u ? nullptr : result;
}

// A chain that looks normal still may hold clauses that decide one another.
const UOp* ChainRule(const UOp* u, RuleContext& context) {
  if (MayBeNormal(u) && !IsBool(u->dtype)) return nullptr;
  return ChainNormal(u, context);
}

}  // namespace

std::span<const NativeRule> NativeLogicRules() {
  static const NativeRule rules[] = {
      {"chain.normal", OpBit(Op::kAnd) | OpBit(Op::kOr) | OpBit(Op::kMax) | OpBit(Op::kMin),
       ChainRule, "sorts and joins chains of any length"},
  };
  return rules;
}

}  // namespace quern
