#ifndef QUERN_CODEGEN_ROW_MAJOR_H_
#define QUERN_CODEGEN_ROW_MAJOR_H_

#include <vector>

#include "rewrite/graph.h"

namespace quern {

/// The place in a buffer that has these ranges as dimensions, the last one contiguous.
const UOp* RowMajorOffset(UOpGraph& graph, const std::vector<const UOp*>& dimensions);

}  // namespace quern

#endif  // QUERN_CODEGEN_ROW_MAJOR_H_
