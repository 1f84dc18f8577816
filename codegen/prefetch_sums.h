#ifndef QUERN_CODEGEN_PREFETCH_SUMS_H_
#define QUERN_CODEGEN_PREFETCH_SUMS_H_

#include <cstdint>

#include "rewrite/graph.h"

namespace quern {

/// A sum that is cut into blocks adds each tile of its block to what memory holds of the others.
/// Tiles lie in rows far apart, which hardware does not fetch ahead, so that every tile would wait
/// for memory at its end. Here each such load becomes one that fetches the tile of the next
/// iteration, for outputs larger than `cache_bytes`. Runs after Expand.
const UOp* PrefetchSums(UOpGraph& graph, const UOp* sink, int64_t cache_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_PREFETCH_SUMS_H_
