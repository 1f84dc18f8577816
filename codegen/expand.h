#ifndef QUERN_CODEGEN_EXPAND_H_
#define QUERN_CODEGEN_EXPAND_H_

#include "rewrite/graph.h"

namespace quern {

/// Removes the register axes from lowered statements: every store with free UPCAST, UNROLL or
/// GROUP_REDUCE axes becomes a block of copies, one for each combination of their values, and what
/// depends on its LANE axis becomes a vector.
///
/// An access whose offset is `base + stride * lane` becomes `broadcast(base) + lanes * stride`,
/// which emission recognises as a vector load (stride 1) or a strided one; any other offset is a
/// gather. REDUCEs over register axes become chains of operations, and `horizontal` over the lanes.
const UOp* Expand(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_EXPAND_H_
