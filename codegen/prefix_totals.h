#ifndef QUERN_CODEGEN_PREFIX_TOTALS_H_
#define QUERN_CODEGEN_PREFIX_TOTALS_H_

#include "rewrite/graph.h"

namespace quern {

/// Where the lanes of a vector are combined whose prefix is computed, too, takes the last lane of
/// that: the carry of a scan costs one lane instead of a tree of shuffles.
const UOp* SharePrefixTotals(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_PREFIX_TOTALS_H_
