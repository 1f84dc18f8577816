#ifndef QUERN_REWRITE_EVALUATE_H_
#define QUERN_REWRITE_EVALUATE_H_

#include <cstdint>

#include "rewrite/dtype.h"
#include "rewrite/op.h"

namespace quern {

/// One scalar of any type: integers, bool and Index in `i`, canonical as WrapInteger leaves them;
/// float types as a double in `f`, rounded to the type.
union Scalar {
  int64_t i;
  double f;
};

/// The value of an elementwise operation on scalars, as docs/semantics.md has it.
///
/// `from` is the type of the last source (which is that of all sources, but for the condition of
/// kWhere), `to` that of the result; `s` holds as many scalars as the op has sources. Index
/// arithmetic that leaves 64 bits sets `*overflow` and gives any value.
Scalar Evaluate(Op op, ScalarType from, ScalarType to, const Scalar* s, bool* overflow);

/// What a reduction by `op` (kAdd, kMul, kMax or kMin) begins with, as ReduceIdentity.
Scalar ReduceStart(Op op, ScalarType type);

/// The bits of a value as they stand in memory, in the low ByteSize(type) bytes.
uint64_t ScalarToBits(ScalarType type, Scalar value);
Scalar ScalarFromBits(ScalarType type, uint64_t bits);

}  // namespace quern

#endif  // QUERN_REWRITE_EVALUATE_H_
