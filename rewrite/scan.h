#ifndef QUERN_REWRITE_SCAN_H_
#define QUERN_REWRITE_SCAN_H_

#include <span>
#include <vector>

#include "rewrite/graph.h"

namespace quern {

// A SCAN's ranges count through one sequence of places, the first one slowest. At each place it is
// its value combined over the places up to this one (docs/semantics.md). Its ranges are free in it.

/// `flags`: kScanExclusive, kScanReverse. QUERN_CHECKs that there is a range.
const UOp* Scan(UOpGraph& g, Op op, int64_t flags, const UOp* value,
                std::span<const UOp* const> ranges);

/// Writes as SCANs the reductions that are one: those of values masked by a comparison of the
/// reduced variable with an output variable, on which nothing else in them depends.
///
///     y[i] = sum[j](where(j <= i, f(j), 0))      becomes      y[i] = scan_add[i](f(i))
///
/// What was n² operations is n then. A reduction stays as it is unless
///  - the mask is j <= i, j < i, j >= i or j > i, in whatever spelling, and i is an output loop;
///  - both loops have one size;
///  - where the mask is false the value is the identity of the reduction;
///  - without the mask the value does not depend on i.
const UOp* RecognizeScans(UOpGraph& graph, const UOp* sink);

/// The definition of a SCAN: each one as the REDUCE, over ranges of its own, of its value where the
/// place counts and the identity elsewhere. `sink` may belong to another graph; the result does
/// unless it has SCANs.
const UOp* ScansAsReductions(UOpGraph& graph, const UOp* sink);

/// The ranges of a place that is counted by several, outer · n + inner, slowest first.
std::vector<const UOp*> SlowestFirst(const UOp* place);

/// Whether some SCAN of the kernel counts through `range`.
bool IsScanned(const UOp* kernel, const UOp* range);

}  // namespace quern

#endif  // QUERN_REWRITE_SCAN_H_
