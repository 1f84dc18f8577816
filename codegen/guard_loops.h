#ifndef QUERN_CODEGEN_GUARD_LOOPS_H_
#define QUERN_CODEGEN_GUARD_LOOPS_H_

#include <vector>

#include "rewrite/graph.h"
#include "rewrite/simplify.h"

namespace quern {

/// Puts guards into the loops of reductions: conditions without which an iteration adds nothing.
///
///     for r in 3:                                   for r in 3:
///       for c in 64:                                  guard r + h >= 1
///         sum += x[r + h - 1, c if r + h >= 1] …  →    for c in 64:
///                                                       sum += x[r + h - 1, c if r + h >= 1] …
///
/// The rows of an image that a window has beyond the border are left out in one piece, and what
/// remains needs no mask there. The conditions are those that masks of loads have in common and
/// that depend on the loop and on loops around it, no more; that nothing is left to do without one
/// is what the simplifier says. Masks keep their conditions; emission leaves out those that hold.
/// Runs before SplitLoops, which still cuts loops for them where that makes few copies.
const UOp* GuardLoops(UOpGraph& graph, const UOp* sink, const SimplifyOptions& options);

/// The conditions that must hold for `condition` to, if it is a conjunction of them; else itself.
std::vector<const UOp*> Conjuncts(const UOp* condition);

/// The conjuncts of a mask that are not among `implied`, which hold. A vector that says the same
/// for all lanes counts as its scalar.
std::vector<const UOp*> ConjunctsLeft(const UOp* mask, const std::vector<const UOp*>& implied);

}  // namespace quern

#endif  // QUERN_CODEGEN_GUARD_LOOPS_H_
