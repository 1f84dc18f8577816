#include "codegen/math_coefficients.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

namespace table = math_coefficients;

// tanh a = 1 − 2/(e^2a + 1), and near zero a + a³·P(a²).
const UOp* TanhF32(const MathBuilder& b, const UOp* a) {
  const MathBuilder::Rounded k = b.Round(a, 2 * table::kLog2EF32[0], 1, b.exponent_bias());
  // One part of log 2 is enough: where k is large, e^2a no longer matters.
  const UOp* r = b.MulAdd(k.value, b.Number(-table::kHalfLn2[0]), a);
  const UOp* p = b.MulAdd(b.Polynomial(table::kExpTwiceF32, r), r, b.Number(1));
  const UOp* sum = b.MulAdd(p, b.PowerOfTwo(k.count), b.Number(1));
  const UOp* large = b.Sub(b.Number(1), b.Div(b.Number(2), sum));

  const UOp* square = b.Mul(a, a);
  const UOp* cube = b.Mul(square, a);
  const UOp* small = b.MulAdd(b.Polynomial(table::kTanhF32, square), cube, a);
  return b.If(b.Less(a, b.Number(table::kTanhBorder[0])), small, large);
}

// tanh a = u/(u + 1) with u = (e^2a − 1)/2, which is small where a is: one formula for all a. It is
// shorter, and wrong by up to 2.6 ULP: too much for f32.
const UOp* TanhF64(const MathBuilder& b, const UOp* a) {
  const MathBuilder::Rounded k = b.Round(a, 2 * table::kLog2EF64[0], 1, b.exponent_bias());
  const UOp* r = b.Reduce(a, k.value, table::kHalfLn2F64);
  // (e^2r − 1)/2 = r + r²·(…)
  const UOp* v = b.MulAdd(b.Mul(r, r), b.Polynomial(table::kHalfExpm1F64, r), r);
  // (2^k·(1 + 2v) − 1)/2 = 2^k·v + (2^k − 1)/2
  const UOp* power = b.PowerOfTwo(k.count);
  const UOp* u = b.MulAdd(power, v, b.MulAdd(power, b.Number(0.5), b.Number(-0.5)));
  return b.Div(u, b.Add(u, b.Number(1)));
}

}  // namespace

const UOp* BuildTanh(const MathBuilder& b, const UOp* x) {
  // From here on tanh rounds to 1, and so does what is computed.
  const UOp* a = b.AtMost(b.Abs(x), b.Select(9.5, 20.0));
  return b.WithSign(b.is_f64() ? TanhF64(b, a) : TanhF32(b, a), x);
}

}  // namespace quern
