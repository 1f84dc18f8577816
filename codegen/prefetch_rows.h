#ifndef QUERN_CODEGEN_PREFETCH_ROWS_H_
#define QUERN_CODEGEN_PREFETCH_ROWS_H_

#include "rewrite/graph.h"

namespace quern {

/// Fetches the next row while this one is computed. Where a loop over rows reads a row in one inner
/// loop and again in a later one, the first waits for memory and the second, which finds the row in
/// the cache, leaves memory idle: hardware fetches ahead within a page only. So the loads of the
/// second one fetch what lies one row further on.
///
/// Only of buffers of more than `cache_bytes`, which are not cached anyway.
const UOp* PrefetchRows(UOpGraph& graph, const UOp* sink, int64_t cache_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_PREFETCH_ROWS_H_
