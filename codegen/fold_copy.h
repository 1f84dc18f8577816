#ifndef QUERN_CODEGEN_FOLD_COPY_H_
#define QUERN_CODEGEN_FOLD_COPY_H_

#include "rewrite/graph.h"

namespace quern {

/// A copy that Expand made of a node, or the constant that it is: the gates of some rows of a tile
/// are false, and nothing of what those multiply is left (rewrite/outside.h).
const UOp* FoldCopy(UOpGraph& graph, const UOp* copy);

}  // namespace quern

#endif  // QUERN_CODEGEN_FOLD_COPY_H_
