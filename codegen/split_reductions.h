#ifndef QUERN_CODEGEN_SPLIT_REDUCTIONS_H_
#define QUERN_CODEGEN_SPLIT_REDUCTIONS_H_

#include "rewrite/graph.h"

namespace quern {

/// Splits every REDUCE whose loops have an output loop between them into nested REDUCEs, so that
/// the loops of each one are neighbours in the nest. With loops k0, i, k1 (outermost first)
///
///     reduce(v, k0, k1)  becomes  reduce(reduce(v, k1), k0)
///
/// where the outer one will accumulate into a tile over i. Register axes stay with the innermost.
const UOp* SplitReductions(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_SPLIT_REDUCTIONS_H_
