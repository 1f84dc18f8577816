#ifndef QUERN_CODEGEN_SPLIT_SCANS_H_
#define QUERN_CODEGEN_SPLIT_SCANS_H_

#include "rewrite/graph.h"

namespace quern {

/// Takes each SCAN apart into one over loops, of what comes before, and one over registers:
///
///     scan[i, u](f)    becomes    scan_before[i](reduce[v](f with v for u)) + scan[u](f)
///
/// A SCAN over loops is exclusive and runs forwards then: where it ran backwards, all of the kernel
/// runs through these loops from their ends. SplitPhases must have run: no SCAN is over threads.
const UOp* SplitScans(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_SPLIT_SCANS_H_
