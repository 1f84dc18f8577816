#ifndef QUERN_CODEGEN_TWO_STAGE_H_
#define QUERN_CODEGEN_TWO_STAGE_H_

#include "rewrite/graph.h"

namespace quern {

/// Splits a kernel into phases where a reduction runs over threads. With a THREAD range t
///
///     store(out[i], reduce(v, t, k))
///  becomes
///     store(temporary[t, i], reduce(v, k))          first phase, parallel over t
///     store(out[i], reduce(temporary[t, i], t))     second phase
///
/// A SCAN over threads is a reduction, too, of each thread's block; in the second phase each block
/// begins with the totals of those before it. Of two SCANs that run through one loop in both
/// directions one has a phase of its own, whose results wait in a temporary.
///
/// Where no thread waits for all others (a SCAN in one direction, nothing reduced over threads),
/// the phases carry kPartByPartFlag (rewrite/kernel_flags.h).
///
/// The result is a sink of sinks, one a phase, also when nothing was split.
const UOp* SplitPhases(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_TWO_STAGE_H_
