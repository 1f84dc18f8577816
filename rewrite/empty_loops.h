#ifndef QUERN_REWRITE_EMPTY_LOOPS_H_
#define QUERN_REWRITE_EMPTY_LOOPS_H_

#include "rewrite/graph.h"

namespace quern {

/// `root` without the stores and loops that never run, because a range of theirs has size 0. The
/// rules need this to have happened: bounds know no empty interval, so they would take an empty
/// range for the constant 0. Anything but a sink is returned as it is.
const UOp* DropEmptyLoops(UOpGraph& graph, const UOp* root);

}  // namespace quern

#endif  // QUERN_REWRITE_EMPTY_LOOPS_H_
