#ifndef QUERN_CODEGEN_MATRIX_TILES_H_
#define QUERN_CODEGEN_MATRIX_TILES_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Replaces loops of dot-product instructions by loops of instructions on tiles, where the target
/// has them:
///
///     for k in 64: r[row] = matrix(r[row], a[row, k], b[k])    for each of 16 rows
///
/// is `for k in 4: r[all rows] = tile(…)`, steps that are left over staying as they were. The loop
/// must do nothing else; the rows' accumulators have the instruction's lanes; each row's factor
/// lies side by side along the loop, the rows equally far apart, under no mask; and what the lanes
/// read is loaded as it lies, equally far apart along the loop. The rows of a tile become
/// neighbours in their register buffer.
const UOp* UseMatrixTiles(UOpGraph& graph, const UOp* sink, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_MATRIX_TILES_H_
