#ifndef QUERN_REWRITE_FOLD_H_
#define QUERN_REWRITE_FOLD_H_

#include <cstdint>
#include <optional>
#include <span>

#include "rewrite/graph.h"

namespace quern {

/// The result of an elementwise operation on constants, as docs/semantics.md says. Constants are
/// given and returned as the bits of `UOp::arg.a`. `source` is the type of the last source (the
/// operands of a comparison or a cast). nullopt where there is no answer (Index beyond 64 bits).
std::optional<int64_t> EvaluateConstant(Op op, ScalarType result, ScalarType source,
                                        std::span<const int64_t> args);

/// The constant that an elementwise node with only constant sources (or a broadcast of a constant)
/// is; nullptr if it is none.
const UOp* FoldConstant(UOpGraph& g, const UOp* u);

}  // namespace quern

#endif  // QUERN_REWRITE_FOLD_H_
