#include "codegen/math_coefficients.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

namespace table = math_coefficients;

// erf a = a + a·P(a²); P is small, so its errors hardly count.
const UOp* ErfSmall(const MathBuilder& b, const UOp* a) {
  using Table = std::span<const double>;
  const UOp* p = b.Polynomial(b.Select<Table>(table::kErfF32, table::kErfF64), b.Mul(a, a));
  return b.MulAdd(a, p, a);
}

// erf a = 1 − 2^q(a). The logarithm of 1 − erf is nearly a parabola, and its error counts for less
// the further out it is, so that a short polynomial does.
const UOp* ErfLarge(const MathBuilder& b, const UOp* a) {
  using Table = std::span<const double>;
  if (table::kErfCentre[b.is_f64()] != 0) a = b.Sub(a, b.Number(table::kErfCentre[b.is_f64()]));
  const UOp* q = b.Polynomial(b.Select<Table>(table::kLog2ErfcF32, table::kLog2ErfcF64), a);
  // One more bit beside the exponent is the sign: this makes −2^k.
  const int64_t negative = b.Select(1 << 8, 1 << 11);
  const MathBuilder::Rounded k = b.Round(q, 1, 1, b.exponent_bias() + negative);
  const UOp* r = b.Sub(q, k.value);  // exact
  const Table exp2 = b.Select<Table>(table::kExp2NarrowF32, table::kExp2NarrowF64);
  const UOp* p = b.MulAdd(b.Polynomial(exp2, r), r, b.Number(1));
  return b.MulAdd(p, b.PowerOfTwo(k.count), b.Number(1));
}

}  // namespace

const UOp* BuildErf(const MathBuilder& b, const UOp* x) {
  const UOp* a = b.Abs(x);
  const UOp* small = b.Less(a, b.Number(table::kErfBorder[b.is_f64()]));
  // Above the clamp erf rounds to 1, and so does what is computed.
  const UOp* large = ErfLarge(b, b.AtMost(a, table::kErfTop[b.is_f64()]));
  return b.WithSign(b.If(small, ErfSmall(b, a), large), x);
}

}  // namespace quern
