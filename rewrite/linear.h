#ifndef QUERN_REWRITE_LINEAR_H_
#define QUERN_REWRITE_LINEAR_H_

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "rewrite/bounds.h"
#include "rewrite/graph.h"

namespace quern {

/// constant + Σ coefficient · term, for an Index expression. Terms are distinct, have coefficients
/// that are not 0, and are no sums and no multiples themselves; they stand in the normal order:
/// outermost loops first, so that what an inner loop does not change is one subexpression.
///
/// For a vector expression a term with one lane stands for its broadcast.
struct LinearForm {
  std::vector<std::pair<const UOp*, int64_t>> terms;
  int64_t constant = 0;
  int lanes = 1;

  /// The coefficient of `term`, 0 if it does not occur.
  int64_t CoefficientOf(const UOp* term) const;
};

/// Reads an Index expression as a linear form. Products of two terms, divisions and so on are terms
/// of their own. A coefficient that would leave 64 bits makes its factor such a term, too.
LinearForm ToLinear(const UOp* index);

/// The one normal spelling of a linear form: ((t0·c0 + t1·c1) + …) + constant, without `·1` and
/// `+ 0`. Equal forms give the same node.
const UOp* FromLinear(UOpGraph& g, const LinearForm& form);

/// a + factor·b; false (and `a` unspecified) if a number leaves 64 bits.
bool AddScaled(LinearForm& a, const LinearForm& b, int64_t factor);

/// The interval of a form, from those of its terms.
Bounds LinearBounds(const LinearForm& form, BoundsAnalysis& bounds);

/// Where a term stands in the normal order: the innermost loop it depends on, then its content. It
/// does not depend on ids, so it is the same in every graph.
struct TermOrder {
  int axis = -1;
  Hash128 hash;
  std::strong_ordering operator<=>(const TermOrder&) const = default;
  bool operator==(const TermOrder&) const = default;
};
TermOrder OrderOfTerm(const UOp* term);

}  // namespace quern

#endif  // QUERN_REWRITE_LINEAR_H_
