#include <algorithm>

#include "rewrite/divide_index.h"
#include "rewrite/linear.h"
#include "rewrite/native_rule.h"
#include "rewrite/wide_integer.h"

// Sums of Index terms, of any length. A table row sees two or three terms; this does for n terms
// what the rows of rules_ring.cc state for these.

namespace quern {
namespace {

// The factor and the term of one summand of a normal sum.
const UOp* TermOf(const UOp* summand) {
  return summand->op == Op::kMul && summand->src(1)->IsConst() ? summand->src(0) : summand;
}

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

// The normal spelling of z floordiv c.
const UOp* Quotient(const UOp* z, const UOp* c, RuleContext& context) {
  const UOp* u = context.graph.Make(Op::kFloorDiv, z->dtype, {z, c});
  const UOp* better = DivideIndex(u, context);
  return better == nullptr ? u : better;
}

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
                 IsPositiveConst(other->src(1)) && FitsInt64(Wide{c} * other->src(1)->IntValue())) {
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

}  // namespace

std::span<const NativeRule> NativeSumRules() {
  static const NativeRule rules[] = {
      {"affine.normal", OpBit(Op::kAdd) | OpBit(Op::kSub) | OpBit(Op::kMul) | OpBit(Op::kNeg),
       AffineNormal, "sorts and joins sums of any length"},
  };
  return rules;
}

}  // namespace quern
