#ifndef QUERN_REWRITE_VERIFY_H_
#define QUERN_REWRITE_VERIFY_H_

#include "absl/status/status.h"
#include "rewrite/uop.h"

namespace quern {

/// Whether `sink` is a well-formed kernel AST:
///  - every node has a meaning (verify_node.h), there are no vectors, and no statements but stores;
///  - at most 64 ranges, of which no two share an axis number;
///  - REDUCEs close reduce axes only, and no reduce axis is left open in a store;
///  - one PARAM node for each slot;
///  - every access is proved to lie inside its buffer (prove_access.h);
///  - a buffer that is loaded and stored is so at one offset only.
///
/// Errors name the node and the values at fault.
absl::Status VerifyKernel(const UOp* sink);

/// Whether `sink` is a well-formed lowered kernel: a sink of phases, in which every node has a
/// meaning; no REDUCE or STAGE is left; every range is bound by exactly one loop around its use;
/// register axes are no loops; buffers of one kind have different slots; and accesses by Index
/// offsets are proved to lie inside their buffers.
absl::Status VerifyLowered(const UOp* sink);

}  // namespace quern

#endif  // QUERN_REWRITE_VERIFY_H_
