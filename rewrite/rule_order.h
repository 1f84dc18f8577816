#ifndef QUERN_REWRITE_RULE_ORDER_H_
#define QUERN_REWRITE_RULE_ORDER_H_

#include "rewrite/rule.h"

namespace quern {

/// Whether `after` is smaller than `before` in a reduction order, whatever the captures stand for.
/// If every rule of a set makes things smaller in one such order, applying them comes to an end.
///
/// Fewer captures are smaller, whatever else happens; more of any one are never smaller. Where
/// their number stays the same, a lexicographic path order decides: an operation is larger than
/// everything that is made of smaller operations and of its own operands. Which operation is larger
/// follows from what the rules turn into what (`sub` into `add` and `mul`, `/` past `+`, `not` into
/// a comparison); operands are compared from the last to the first, so that sums lean to the left
/// and constants stand last. Constants are the smallest of all, and equal to one another: an
/// expression of constants is folded.
bool IsSmaller(Domain domain, const Expr& after, const Expr& before);

}  // namespace quern

#endif  // QUERN_REWRITE_RULE_ORDER_H_
