#include "codegen/math_coefficients.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

namespace table = math_coefficients;

// sin r for |r| up to pi/2, as r + r³·P(r²): adding to r itself, the rounding errors of the
// polynomial hardly count.
const UOp* SinNearZero(const MathBuilder& b, const UOp* r) {
  using Table = std::span<const double>;
  const UOp* square = b.Mul(r, r);
  const UOp* p = b.Polynomial(b.Select<Table>(table::kSinF32, table::kSinF64), square);
  const UOp* sin = b.MulAdd(p, b.Mul(square, r), r);
  // Rounding never leads past 1 in f32, where every x up to 2^20 has been tried; in f64 it does.
  return b.is_f64() ? b.AtMost(b.AtLeast(sin, -1), 1) : sin;
}

}  // namespace

const UOp* BuildSin(const MathBuilder& b, const UOp* x) {
  // Beyond the bound the reduction would lose digits; the result is then 0 (which is between -1 and
  // 1, as it must be), and NaN for what is not finite.
  const UOp* a = b.Abs(x);
  const UOp* bound = b.Number(b.Select(0x1p23, 0x1p22));
  const UOp* reduced = b.If(b.Less(a, bound), a, b.Sub(a, a));

  const UOp* r;
  const UOp* count;
  if (b.is_f64()) {
    const MathBuilder::Rounded k = b.Round(reduced, table::kOneOverPi[0], 1);
    r = b.Reduce(reduced, k.value, table::kPiForF64);
    count = k.count;
  } else {
    // The products k·part must be exact even if muladd rounds twice. In f32 that would take ten
    // parts of five bits each; in f64 it takes two. An x/pi rounded to f32 would not do either: for
    // large x it can be so wrong that |r| passes pi/2 by 5 %.
    const MathBuilder wide = b.Widened();
    const UOp* x64 = wide.Convert(reduced);
    const MathBuilder::Rounded k = wide.Round(x64, table::kOneOverPi[0], 1);
    r = b.Convert(wide.Reduce(x64, k.value, table::kPiForF32));
    count = b.ConvertBits(k.count);
  }
  // sin(r + k·pi) is sin r for even k and −sin r for odd k, and the sine is odd. The sign of x is
  // put in at the end because r + r³·P(r²) would turn −0 into 0.
  const UOp* odd = b.IntegerOp(Op::kShl, count, b.Integer(b.Select(31, 63)));
  const UOp* sign = b.IntegerOp(Op::kXor, odd, b.SignBit(x));
  return b.FromBits(b.IntegerOp(Op::kXor, b.Bits(SinNearZero(b, r)), sign));
}

}  // namespace quern
