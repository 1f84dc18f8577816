#ifndef QUERN_CODEGEN_SPLIT_LOOPS_H_
#define QUERN_CODEGEN_SPLIT_LOOPS_H_

#include "rewrite/graph.h"
#include "rewrite/simplify.h"

namespace quern {

/// Cuts loops where a condition on the loop variable becomes always true or always false, so that
/// the interior of a padded loop carries no masks:
///
///     loop i < 32 { store(… gate 32·i + lane < 1000) }
///  becomes
///     loop i < 31 { store(…) }   { store(… gate lane < 8) }
///
/// Runs on lowered statements before Expand, and leaves no blocks and no loop without statements.
/// Loops over threads are not cut, and a nest is never copied more than 24 times in all.
const UOp* SplitLoops(UOpGraph& graph, const UOp* sink, const SimplifyOptions& options = {});

}  // namespace quern

#endif  // QUERN_CODEGEN_SPLIT_LOOPS_H_
