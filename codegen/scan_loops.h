#ifndef QUERN_CODEGEN_SCAN_LOOPS_H_
#define QUERN_CODEGEN_SCAN_LOOPS_H_

#include <span>
#include <vector>

#include "rewrite/graph.h"

namespace quern {

// How the carry of a SCAN over loops lives in a loop nest (linearize.cc).

/// Whether any of the loops among `ranges` has left its first iteration; nullptr if none is a loop.
const UOp* IsLater(UOpGraph& graph, std::span<const UOp* const> ranges);

/// Shortens a path of loops, outermost first, so that each iteration of it is the next place of the
/// sequence: inside the first loop of `scan` only loops among `known`, on which the scan depends,
/// its own ones in their order. Any other would repeat places.
void KeepInSequence(const UOp* scan, const std::vector<const UOp*>& known,
                    std::vector<const UOp*>& path);

/// Of the loops around a scan, those inside its first one that are not its own: each iteration of
/// them has a sequence of its own, whose carry waits.
std::vector<const UOp*> LoopsInside(const UOp* scan, const std::vector<const UOp*>& around);

}  // namespace quern

#endif  // QUERN_CODEGEN_SCAN_LOOPS_H_
