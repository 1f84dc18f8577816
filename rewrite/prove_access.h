#ifndef QUERN_REWRITE_PROVE_ACCESS_H_
#define QUERN_REWRITE_PROVE_ACCESS_H_

#include <optional>

#include "rewrite/bounds.h"
#include "rewrite/linear.h"

namespace quern {

/// The interval in which the offset of a kIndex lies whenever its gate is true; nullopt if the gate
/// is never true. The offset must be of type Index.
///
/// Beside the intervals of ranges this uses the comparisons of which the gate is the conjunction,
/// each as `linear form ≥ 0`: multiples of them are added to the offset as long as that tightens
/// the bound. So the gate 0 ≤ i + k − 1 < n bounds an offset in which 4·i and 4·k stand far apart.
std::optional<Bounds> AccessBounds(const UOp* index);

/// The same of any linear form under a gate (nullptr: always true).
std::optional<Bounds> BoundsUnderGate(const LinearForm& offset, const UOp* gate);

/// Whether each offset of a kIndex is proved to lie in its buffer.
bool ProveAccess(const UOp* index);

}  // namespace quern

#endif  // QUERN_REWRITE_PROVE_ACCESS_H_
