#ifndef QUERN_REWRITE_INTERPRET_H_
#define QUERN_REWRITE_INTERPRET_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "rewrite/uop.h"

namespace quern {

/// Memory that stands for the params of one slot.
struct BufferView {
  int64_t slot = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

/// Runs a kernel: docs/semantics.md in code, and the reference for everything else.
///
/// Takes every form between a kernel AST (a sink of stores) and the lowered one (a sink of phases).
/// Ranges of a store that no loop around it binds are looped over, REDUCEs are computed where they
/// stand, and what does not depend on an inner loop is computed outside it, so that a softmax costs
/// what its two passes cost.
///
/// Float sums and products are accumulated in double and rounded once, which is within the bound
/// for any order. Loops over THREAD ranges run backwards, and memory that only one such loop uses
/// starts each iteration with nonsense in it: code that relies on an order, or on what another
/// thread left behind, is seen.
///
/// A kernel AST that loads a buffer which it also stores reads what was there at the start.
///
/// Errors: a node that VerifyNode refuses, a param without memory or with too little, an access
/// outside its buffer (naming buffer, offset and size), an index that leaves 64 bits, a matrix
/// instruction (its layout belongs to a target).
absl::Status Interpret(const UOp* sink, std::span<const BufferView> params);

}  // namespace quern

#endif  // QUERN_REWRITE_INTERPRET_H_
