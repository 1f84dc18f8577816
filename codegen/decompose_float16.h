#ifndef QUERN_CODEGEN_DECOMPOSE_FLOAT16_H_
#define QUERN_CODEGEN_DECOMPOSE_FLOAT16_H_

#include "rewrite/graph.h"

namespace quern {

/// `root` with all elementwise arithmetic and comparisons of f16 and bf16 done in f32, as
/// docs/semantics.md defines them: sources are widened, the operation is done in f32, the result is
/// rounded. Conversions between these types and anything but f32 go by way of f32 too, so that
/// afterwards f32 is the only type they convert to or from.
///
/// Every operation still rounds to its type: f32 → f16 → f32 is no identity and stays.
///
/// What only moves values (`where`, `load`, `store`, `bitcast`, lanes) keeps the 16-bit type, and
/// so do `reduce` and `horizontal`. With `native_f16_arithmetic` f16 arithmetic stays, but for the
/// elementary functions; rounding f32 sums, products, quotients and roots of f16 to f16 gives what
/// the f16 operation gives, because f32 has 2·11 + 2 digits (S. A. Figueroa, "When is double
/// rounding innocuous?", 1995).
const UOp* DecomposeFloat16(UOpGraph& graph, const UOp* root, bool native_f16_arithmetic = false);

}  // namespace quern

#endif  // QUERN_CODEGEN_DECOMPOSE_FLOAT16_H_
