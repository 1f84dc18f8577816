#ifndef QUERN_OPTIMIZER_TOLERANCE_H_
#define QUERN_OPTIMIZER_TOLERANCE_H_

#include "rewrite/uop.h"

namespace quern {

/// The error, relative to the largest magnitude of the output, that the order of summation and the
/// contraction of multiply-adds may make in a kernel AST: 0 for integers, for floats some roundings
/// and the square root of the number of terms.
double OutputTolerance(const UOp* kernel, DType output);

/// How far two schedules of a kernel may differ in any of its outputs: both may be off.
double ToleranceFor(const UOp* kernel);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_TOLERANCE_H_
