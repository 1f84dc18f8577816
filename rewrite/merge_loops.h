#ifndef QUERN_REWRITE_MERGE_LOOPS_H_
#define QUERN_REWRITE_MERGE_LOOPS_H_

#include "rewrite/graph.h"

namespace quern {

/// A kernel AST in which neighbouring loops that every access walks as one are one loop:
///
///     y[i*7 + j] = x[i*7 + j] * w[i*7 + j]   for i in 5, j in 7
///     y[m]       = x[m]       * w[m]         for m in 35
///
/// One long loop has lanes and tiles that fit where two short ones are full of remainders: the 7×7
/// outputs of a 1×1 convolution become 49, those of 56×56 become 3136 = 98·32. Two loops of one
/// reduction are merged, too; the order of its terms stays. Loops on which a value or a gate
/// depends are left alone. Loops over outputs that run once vanish.
const UOp* MergeLoops(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_REWRITE_MERGE_LOOPS_H_
