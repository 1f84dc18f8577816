#ifndef QUERN_CODEGEN_STAGE_H_
#define QUERN_CODEGEN_STAGE_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Wraps each load that is reused inside a LOCAL tile in a STAGE: the operand is copied ("packed")
/// where the tile begins, in the order in which the loops of the tile read it.
///
/// The tile is the first LOCAL loop and everything inside it. A load is reused if some LOCAL loop
/// does not change its address. Nothing is staged when the sink forbids it (NOLOCALS), and nothing
/// that the kernel writes.
///
/// A factor that a matrix instruction wants wider is widened on the way, once for all who read it.
///
/// The STAGE of a constant operand carries kOnceFlag (rewrite/kernel_flags.h), unless packing would
/// more than double it: its copy holds the whole operand and outlives the run.
const UOp* StageOperands(UOpGraph& graph, const UOp* sink, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_STAGE_H_
