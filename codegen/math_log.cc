#include <limits>

#include "codegen/math_coefficients.h"
#include "codegen/math_functions.h"

namespace quern {
namespace {

namespace table = math_coefficients;

// x = 2^exponent · (1 + fraction), with 1 + fraction between the square roots of 1/2 and 2, so that
// nothing cancels near 1.
struct Parts {
  const UOp* exponent;
  const UOp* fraction;
};

Parts Split(const MathBuilder& b, const UOp* x) {
  const int place = b.exponent_place();
  const UOp* subnormal = b.Less(x, b.Number(b.Select(0x1p-126, 0x1p-1022)));
  const UOp* normal = b.If(subnormal, b.Mul(x, b.Number(b.Select(0x1p23, 0x1p52))), x);
  const UOp* bits = b.Bits(normal);
  // The bits of the square root of 1/2. Counting exponents from there, the mantissa that remains
  // begins there too.
  const UOp* start = b.Integer(b.Select(int64_t{0x3f3504f3}, int64_t{0x3fe6a09e667f3bcd}));
  const UOp* shift = b.Integer(place);
  const UOp* count = b.IntegerOp(Op::kShr, b.IntegerOp(Op::kSub, bits, start), shift);
  const UOp* mantissa =
      b.FromBits(b.IntegerOp(Op::kSub, bits, b.IntegerOp(Op::kShl, count, shift)));
  const UOp* correction = b.If(subnormal, b.Number(-place), b.Number(0));
  return {b.Add(b.Convert(count), correction), b.Sub(mantissa, b.Number(1))};
}

// log(1 + f) as f − tail. In f64 by s = f/(2 + f), whose series has only odd powers: one division
// instead of some ten steps of a polynomial.
const UOp* TailF64(const MathBuilder& b, const UOp* f) {
  const UOp* s = b.Div(f, b.Add(f, b.Number(2)));
  const UOp* z = b.Mul(s, s);
  const UOp* r = b.Mul(b.Polynomial(table::kLogF64, z), z);
  return b.Mul(s, b.Sub(f, r));
}

// Gives the results at the ends of the domain: what was computed there is nonsense.
const UOp* WithSpecialValues(const MathBuilder& b, const UOp* x, const UOp* log) {
  const double infinity = std::numeric_limits<double>::infinity();
  const UOp* zero = b.Number(0);
  const UOp* outside = b.If(b.Equal(x, zero), b.Number(-infinity),
                            b.Number(std::numeric_limits<double>::quiet_NaN()));
  const UOp* finite = b.If(b.Less(x, b.Number(infinity)), log, x);
  return b.If(b.Less(zero, x), finite, outside);
}

}  // namespace

const UOp* BuildLog(const MathBuilder& b, const UOp* x) {
  const auto [e, f] = Split(b, x);
  using Table = std::span<const double>;
  const Table ln2 = b.Select<Table>(table::kLn2F32, table::kLn2F64);
  const UOp* log;
  if (b.is_f64()) {
    const UOp* tail = b.MulAdd(e, b.Number(-ln2[1]), TailF64(b, f));
    log = b.Sub(f, tail);
  } else {
    const UOp* tail = b.Mul(b.Polynomial(table::kLogF32, f), b.Mul(f, f));
    log = b.Add(f, b.MulAdd(e, b.Number(ln2[1]), tail));
  }
  return WithSpecialValues(b, x, b.MulAdd(e, b.Number(ln2[0]), log));
}

const UOp* BuildLog2(const MathBuilder& b, const UOp* x) {
  const auto [e, f] = Split(b, x);
  const UOp* log;
  if (b.is_f64()) {
    log = b.MulAdd(b.Sub(f, TailF64(b, f)), b.Number(table::kLog2EF64[0]), e);
  } else {
    // 1/log 2 in two parts: rounded to f32 it would cost a quarter of an ULP.
    const UOp* tail = b.Mul(b.Polynomial(table::kLog2F32, f), b.Mul(f, f));
    tail = b.MulAdd(f, b.Number(table::kLog2EF32[1]), tail);
    log = b.Add(e, b.MulAdd(f, b.Number(table::kLog2EF32[0]), tail));
  }
  return WithSpecialValues(b, x, log);
}

}  // namespace quern
