#ifndef QUERN_CODEGEN_LINEARIZE_H_
#define QUERN_CODEGEN_LINEARIZE_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Turns the phases of a kernel (a sink of sinks, see SplitPhases) into statements:
/// `sink(phase(loop(range, …store…)…)…)`.
///
/// Each REDUCE becomes an accumulator and each STAGE a buffer in scratch memory:
///  - An accumulator lives in registers when no output loop runs inside the reduction; else it is a
///    tile over those loops, in scratch memory, or the kernel's output itself when nothing is done
///    to the sum before it is stored.
///  - A SCAN has a carry: a register, or a tile over the loops that stand between its own.
///  - Every piece stands at the outermost loop where its own ranges are known, so work that does
///    not depend on an inner loop is done outside it.
///  - One register axis of each statement becomes the SIMD lanes (type LANE); the other register
///    axes stay free in the statements and are unrolled by Expand.
///
/// REDUCEs and SCANs remain only over register axes. SplitPhases, SplitReductions and SplitScans
/// must have run.
const UOp* Linearize(UOpGraph& graph, const UOp* sink, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_LINEARIZE_H_
