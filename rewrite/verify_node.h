#ifndef QUERN_REWRITE_VERIFY_NODE_H_
#define QUERN_REWRITE_VERIFY_NODE_H_

#include <span>

#include "absl/status/status.h"
#include "rewrite/uop.h"

namespace quern {

/// Whether a node with this content has a meaning in docs/semantics.md: number, ops and dtypes of
/// the sources, dtype of the result, argument. Looks one node deep; the sources are taken as sound.
///
/// What is not documented is refused (`sub` of bool, shifts of Index), so that no two parts of the
/// compiler can give it two meanings.
absl::Status VerifyNode(Op op, DType dtype, std::span<const UOp* const> sources, Arg arg);

inline absl::Status VerifyNode(const UOp* u) {
  return VerifyNode(u->op, u->dtype, u->src(), u->arg);
}

}  // namespace quern

#endif  // QUERN_REWRITE_VERIFY_NODE_H_
