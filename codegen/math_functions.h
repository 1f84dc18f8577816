#ifndef QUERN_CODEGEN_MATH_FUNCTIONS_H_
#define QUERN_CODEGEN_MATH_FUNCTIONS_H_

#include "codegen/math_builder.h"

namespace quern {

/// One function each, in basic arithmetic on the type of the builder. Called by DecomposeMath.

const UOp* BuildExp(const MathBuilder& b, const UOp* x);
const UOp* BuildExp2(const MathBuilder& b, const UOp* x);
const UOp* BuildLog(const MathBuilder& b, const UOp* x);
const UOp* BuildLog2(const MathBuilder& b, const UOp* x);
const UOp* BuildSin(const MathBuilder& b, const UOp* x);
const UOp* BuildTanh(const MathBuilder& b, const UOp* x);
const UOp* BuildErf(const MathBuilder& b, const UOp* x);

}  // namespace quern

#endif  // QUERN_CODEGEN_MATH_FUNCTIONS_H_
