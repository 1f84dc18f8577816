#ifndef QUERN_REWRITE_BUILD_H_
#define QUERN_REWRITE_BUILD_H_

#include <cstdint>
#include <span>

#include "rewrite/graph.h"

namespace quern {

// Makers for single nodes. They give the result its dtype and QUERN_CHECK that the sources fit;
// they simplify nothing. Binary makers demand equal dtypes (lanes included).

const UOp* IndexConst(UOpGraph& g, int64_t value);
const UOp* IntConst(UOpGraph& g, DType dtype, int64_t value);   ///< wraps to the type; bool too
const UOp* FloatConst(UOpGraph& g, DType dtype, double value);  ///< rounds to the type
/// A constant of any type from a number: rounds for floats, wraps for integers, exact for Index.
const UOp* NumberConst(UOpGraph& g, DType dtype, double value);
const UOp* BoolConst(UOpGraph& g, bool value);

const UOp* Param(UOpGraph& g, DType dtype, int64_t slot, int64_t elements);
const UOp* Scratch(UOpGraph& g, DType dtype, int64_t slot, int64_t elements);
const UOp* Register(UOpGraph& g, DType dtype, int64_t slot, int64_t elements);
const UOp* Range(UOpGraph& g, int64_t size, int axis, AxisType type);

/// One element of `buffer`; `gate` may be nullptr.
const UOp* Index(UOpGraph& g, const UOp* buffer, const UOp* offset, const UOp* gate = nullptr);
const UOp* Load(UOpGraph& g, const UOp* index);
const UOp* Store(UOpGraph& g, const UOp* index, const UOp* value);
/// Combines `value` over `ranges` with `op` (kAdd, kMul, kMax or kMin).
const UOp* Reduce(UOpGraph& g, Op op, const UOp* value, std::span<const UOp* const> ranges);
const UOp* Sink(UOpGraph& g, std::span<const UOp* const> statements);

const UOp* Unary(UOpGraph& g, Op op, const UOp* x);
/// Comparisons give bool, everything else the dtype of `a`.
const UOp* Binary(UOpGraph& g, Op op, const UOp* a, const UOp* b);
const UOp* Where(UOpGraph& g, const UOp* condition, const UOp* if_true, const UOp* if_false);
const UOp* Cast(UOpGraph& g, const UOp* x, DType to);

inline const UOp* Add(UOpGraph& g, const UOp* a, const UOp* b) { return Binary(g, Op::kAdd, a, b); }
inline const UOp* Sub(UOpGraph& g, const UOp* a, const UOp* b) { return Binary(g, Op::kSub, a, b); }
inline const UOp* Mul(UOpGraph& g, const UOp* a, const UOp* b) { return Binary(g, Op::kMul, a, b); }
inline const UOp* Lt(UOpGraph& g, const UOp* a, const UOp* b) { return Binary(g, Op::kLt, a, b); }
inline const UOp* And(UOpGraph& g, const UOp* a, const UOp* b) { return Binary(g, Op::kAnd, a, b); }

/// The value that changes nothing when combined with `op`: 0, 1, the lowest or the highest value of
/// the type (infinities for floats). For Index QUERN_CHECKs that `op` is kAdd or kMul.
const UOp* ReduceIdentity(UOpGraph& g, Op op, DType dtype);

}  // namespace quern

#endif  // QUERN_REWRITE_BUILD_H_
