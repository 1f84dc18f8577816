#include "codegen/math_coefficients.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

namespace table = math_coefficients;

// e^x = 2^k · e^r. With k even, 2^(k/2) is a normal number for every x whose result is not zero or
// infinite, and multiplying by it twice rounds once, overflows and underflows as it should. That is
// cheaper than an r half as long (two steps of the polynomial less) with two different powers.
const UOp* Scale(const MathBuilder& b, const UOp* polynomial, const UOp* r, const UOp* half_count) {
  const UOp* p = b.MulAdd(polynomial, r, b.Number(1));
  const UOp* power = b.PowerOfTwo(half_count);
  return b.Mul(b.Mul(p, power), power);
}

}  // namespace

const UOp* BuildExp(const MathBuilder& b, const UOp* x) {
  // Beyond these the result is zero or infinite, but the exponent would not fit its field.
  x = b.AtMost(b.AtLeast(x, b.Select(-104.0, -746.0)), b.Select(89.0, 710.0));
  const double log2_e = b.Select(table::kLog2EF32[0], table::kLog2EF64[0]);
  const MathBuilder::Rounded k = b.Round(x, log2_e, 2, b.exponent_bias());
  using Table = std::span<const double>;
  const UOp* r = b.Reduce(x, k.value, b.Select<Table>(table::kLn2F32, table::kLn2F64));
  return Scale(b, b.Polynomial(b.Select<Table>(table::kExpF32, table::kExpF64), r), r, k.count);
}

const UOp* BuildExp2(const MathBuilder& b, const UOp* x) {
  x = b.AtMost(b.AtLeast(x, b.Select(-151.0, -1076.0)), b.Select(128.0, 1024.0));
  const MathBuilder::Rounded k = b.Round(x, 1, 2, b.exponent_bias());
  const UOp* r = b.Sub(x, k.value);  // exact
  using Table = std::span<const double>;
  return Scale(b, b.Polynomial(b.Select<Table>(table::kExp2F32, table::kExp2F64), r), r, k.count);
}

}  // namespace quern
