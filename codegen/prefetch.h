#ifndef QUERN_CODEGEN_PREFETCH_H_
#define QUERN_CODEGEN_PREFETCH_H_

#include "rewrite/graph.h"

namespace quern {

/// Marks vector loads of packed operands that walk forward in the loops of a reduction: their
/// argument becomes the number of elements after which memory is to be fetched ahead, once for each
/// cache line of those that an iteration reads. A panel lies in the second-level cache and is read
/// front to back, faster than the hardware fetches it by itself (docs/decisions.md has the
/// measurement). Runs after Expand.
const UOp* MarkPrefetches(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_PREFETCH_H_
