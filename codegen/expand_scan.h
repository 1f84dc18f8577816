#ifndef QUERN_CODEGEN_EXPAND_SCAN_H_
#define QUERN_CODEGEN_EXPAND_SCAN_H_

#include <functional>
#include <vector>

#include "rewrite/graph.h"

namespace quern {

/// The copy of a SCAN over register axes at one place of the unrolled ones. `at` has a value for
/// each of the SCAN's ranges, that of `lane` (may be nullptr) without meaning; `value_at` gives the
/// copy of the SCAN's value at such a place.
const UOp* ExpandScan(UOpGraph& graph, const UOp* scan, const UOp* lane, std::vector<int64_t> at,
                      const std::function<const UOp*(const std::vector<int64_t>&)>& value_at);

}  // namespace quern

#endif  // QUERN_CODEGEN_EXPAND_SCAN_H_
