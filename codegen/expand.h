#ifndef QUERN_CODEGEN_EXPAND_H_
#define QUERN_CODEGEN_EXPAND_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Removes the register axes from lowered statements: every store with free UPCAST, UNROLL or
/// GROUP_REDUCE axes becomes a block of copies, one for each combination of their values, and what
/// depends on its LANE axis becomes a vector.
///
/// An access whose offset is `base + stride * lane` becomes `broadcast(base) + lanes * stride`,
/// which emission recognises as a vector load (stride 1) or a strided one; any other offset is a
/// gather. REDUCEs over register axes become chains of operations, and `horizontal` over the lanes.
///
/// Statements with accumulators that fill the registers get loads of their own: a number that
/// stayed in a register until the next such statement wants it, too, would push an accumulator out.
const UOp* Expand(UOpGraph& graph, const UOp* sink, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_EXPAND_H_
