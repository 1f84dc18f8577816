#ifndef QUERN_CODEGEN_TRANSPOSE_STORES_H_
#define QUERN_CODEGEN_TRANSPOSE_STORES_H_

#include "rewrite/graph.h"

namespace quern {

/// Turns a tile around in registers that is stored across its lanes: when the copies of a store lie
/// side by side in memory and its lanes lie apart,
///
///     y[0 + lanes16 * 100] = v0;  y[1 + lanes16 * 100] = v1;  …  y[6 + lanes16 * 100] = v6
///
/// become one store of seven neighbours for each lane, taken from the transposed block. A scatter
/// writes each element by itself. Four copies or more; the stores of one block of statements to a
/// buffer that the kernel does not read. Runs after Expand.
const UOp* TransposeStores(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_TRANSPOSE_STORES_H_
