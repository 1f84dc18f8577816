#ifndef QUERN_CODEGEN_MAP_STATEMENTS_H_
#define QUERN_CODEGEN_MAP_STATEMENTS_H_

#include <functional>

#include "rewrite/graph.h"

namespace quern {

/// `sink` with its statements replaced from the inside out: `map` gets each statement and gives
/// what stands in its place, or nullptr to keep it around the new statements inside it.
const UOp* MapStatements(UOpGraph& graph, const UOp* sink,
                         const std::function<const UOp*(const UOp*)>& map);

}  // namespace quern

#endif  // QUERN_CODEGEN_MAP_STATEMENTS_H_
