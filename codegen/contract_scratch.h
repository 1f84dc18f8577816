#ifndef QUERN_CODEGEN_CONTRACT_SCRATCH_H_
#define QUERN_CODEGEN_CONTRACT_SCRATCH_H_

#include "rewrite/graph.h"

namespace quern {

/// Shortens scratch buffers of which each iteration of some loop around all their uses touches a
/// part of its own: the next iteration may have the same memory. So of the scores of an attention
/// kernel, in whose formula they are a whole matrix, only a block of rows is left.
///
/// Takes and returns a kernel of statements.
const UOp* ContractScratch(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_CONTRACT_SCRATCH_H_
