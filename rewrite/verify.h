#ifndef QUERN_REWRITE_VERIFY_H_
#define QUERN_REWRITE_VERIFY_H_

#include "absl/status/status.h"
#include "rewrite/uop.h"

namespace quern {

/// Whether `sink` is a well-formed kernel AST, in one part or in several (a sink of sinks
/// or phases, which run one after the other):
///  - every node has a meaning (verify_node.h), there are no vectors, and no statements but stores;
///  - at most 64 ranges, of which no two in one part share an axis number;
///  - REDUCEs close no output loops, and no reduce axis is left open in a store;
///  - one PARAM node for each slot;
///  - every access is proved to lie inside its buffer (prove_access.h);
///  - a param that is loaded and stored in one part is so at one offset only, and not loaded by
///    stores after the one that writes it;
///  - a temporary (SCRATCH) is stored by one store of its part and loaded by later ones only.
///
/// Errors name the node and the values at fault.
absl::Status VerifyKernel(const UOp* sink);

/// Whether `sink` is a well-formed kernel of statements: a sink of phases, in which every node has
/// a meaning and every range is bound by exactly one loop around its use; params have different
/// slots, and so do the private buffers of one kind in each phase; and accesses by Index offsets
/// are proved to lie inside their buffers.
///
/// Register axes are no loops. Until they are expanded they may stand free in a store, or be closed
/// by a REDUCE.
absl::Status VerifyLowered(const UOp* sink);

/// VerifyLowered, and nothing is left that is neither loop nor vector: no REDUCE, STAGE or register
/// axis.
absl::Status VerifyExpanded(const UOp* sink);

}  // namespace quern

#endif  // QUERN_REWRITE_VERIFY_H_
