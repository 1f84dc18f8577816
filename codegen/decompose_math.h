#ifndef QUERN_CODEGEN_DECOMPOSE_MATH_H_
#define QUERN_CODEGEN_DECOMPOSE_MATH_H_

#include "rewrite/graph.h"

namespace quern {

/// `root` with every exp, exp2, log, log2, sin, tanh and erf of f32 and f64 spelled out in basic
/// arithmetic, so that it is vectorised like everything else and is the same on every target. A
/// graph without them is returned as it is.
///
/// The error is at most 2 ULP in f32 and 4 ULP in f64, whether a muladd is rounded once or twice;
/// special values are those of docs/semantics.md. The code has no branches: what is out of range is
/// clamped, and pieces are joined with `where`.
///
/// Sources: the classical scheme of argument reduction, polynomial and reconstruction (J.-M.
/// Muller, "Elementary Functions", 3rd ed., chapters 3 and 11), with the reduction of W. J. Cody
/// and W. Waite ("Software Manual for the Elementary Functions", 1980): the period is subtracted in
/// parts so short that their products are exact. The polynomials are those of scripts/fit_math.py.
///
/// Some sums round to an integer by adding and subtracting 1.5·2^23 (1.5·2^52 for f64): rules that
/// reassociate floats must run before this pass, not after it.
///
/// f16 and bf16 are no concern of this pass: DecomposeFloat16 runs first.
const UOp* DecomposeMath(UOpGraph& graph, const UOp* root);

}  // namespace quern

#endif  // QUERN_CODEGEN_DECOMPOSE_MATH_H_
