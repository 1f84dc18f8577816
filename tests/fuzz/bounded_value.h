#ifndef QUERN_TESTS_FUZZ_BOUNDED_VALUE_H_
#define QUERN_TESTS_FUZZ_BOUNDED_VALUE_H_

#include <cmath>

#include "rewrite/build.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// A value of a random kernel, and what is known of it if it is a float that is not exact: how
/// large it can be, and how far two right implementations of it can be apart from the true value.
struct BoundedValue {
  const UOp* node = nullptr;
  double magnitude = 0;
  double error = 0;
  bool exact = true;
};

/// The relative rounding of one operation.
inline double RoundingUnit(DType t) {
  switch (t.scalar) {
    case ScalarType::kF16:
      return 0x1p-10;
    case ScalarType::kBF16:
      return 0x1p-7;
    case ScalarType::kF32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

/// The value brought into [-bound, bound].
inline BoundedValue Clamp(UOpGraph& g, const BoundedValue& v, double bound) {
  const DType t = v.node->dtype;
  const UOp* low = Binary(g, Op::kMin, v.node, FloatConst(g, t, bound));
  const UOp* both = Binary(g, Op::kMax, low, FloatConst(g, t, -bound));
  return {both, bound, v.error, v.exact};
}

/// One of the elementary functions, with the ULPs that docs/semantics.md allows it, of a value
/// within ±4.
inline BoundedValue Transcendental(UOpGraph& g, Random& random, const BoundedValue& a) {
  const DType t = a.node->dtype;
  const double u = 4 * RoundingUnit(t);
  switch (random.Below(7)) {
    case 0:
      return {Unary(g, Op::kExp, a.node), 55, 60 * std::expm1(a.error) + 55 * u, false};
    case 1:
      return {Unary(g, Op::kExp2, a.node), 16, 20 * std::expm1(a.error) + 16 * u, false};
    case 2:
    case 3: {
      const UOp* x = Add(g, Unary(g, Op::kAbs, a.node), FloatConst(g, t, 1));
      const Op op = random.Chance(50) ? Op::kLog : Op::kLog2;
      return {Unary(g, op, x), 3, 2 * (a.error + 5 * u) + 3 * u, false};
    }
    case 4:
      return {Unary(g, Op::kSin, a.node), 1, a.error + u, false};
    case 5:
      return {Unary(g, random.Chance(50) ? Op::kTanh : Op::kErf, a.node), 1, 1.2 * a.error + u,
              false};
    default: {
      const UOp* x = Unary(g, Op::kAbs, a.node);
      return {Unary(g, Op::kSqrt, x), 2, std::sqrt(a.error) + 2 * u, false};
    }
  }
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_BOUNDED_VALUE_H_
