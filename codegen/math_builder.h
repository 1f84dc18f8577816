#ifndef QUERN_CODEGEN_MATH_BUILDER_H_
#define QUERN_CODEGEN_MATH_BUILDER_H_

#include <cstdint>
#include <span>

#include "rewrite/build.h"

namespace quern {

/// Makers of the nodes from which the elementary functions are built, all of one float type (f32 or
/// f64, any number of lanes) and the integer type of the same width.
class MathBuilder {
 public:
  MathBuilder(UOpGraph& graph, DType type) : graph_(graph), type_(type) {
    QUERN_CHECK(type.scalar == ScalarType::kF32 || type.scalar == ScalarType::kF64);
  }

  bool is_f64() const { return type_.scalar == ScalarType::kF64; }
  /// One of two constants or tables, as the type is.
  template <typename T>
  T Select(T for_f32, T for_f64) const {
    return is_f64() ? for_f64 : for_f32;
  }
  /// The same makers for f64 with as many lanes.
  MathBuilder Widened() const { return {graph_, DType(ScalarType::kF64, type_.lanes)}; }

  const UOp* Number(double value) const { return FloatConst(graph_, type_, value); }
  const UOp* Integer(int64_t value) const { return IntConst(graph_, bits_type(), value); }

  const UOp* Add(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kAdd, a, b); }
  const UOp* Sub(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kSub, a, b); }
  const UOp* Mul(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kMul, a, b); }
  const UOp* Div(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kDiv, a, b); }
  const UOp* MulAdd(const UOp* a, const UOp* b, const UOp* c) const {
    return graph_.Make(Op::kMulAdd, type_, {a, b, c});
  }
  const UOp* Abs(const UOp* a) const { return Unary(graph_, Op::kAbs, a); }
  /// `a` moved into [low, high]; NaN stays NaN.
  const UOp* AtLeast(const UOp* a, double low) const {
    return Binary(graph_, Op::kMax, a, Number(low));
  }
  const UOp* AtMost(const UOp* a, double high) const {
    return Binary(graph_, Op::kMin, a, Number(high));
  }

  const UOp* Less(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kLt, a, b); }
  const UOp* Equal(const UOp* a, const UOp* b) const { return Binary(graph_, Op::kEq, a, b); }
  const UOp* If(const UOp* condition, const UOp* yes, const UOp* no) const {
    return Where(graph_, condition, yes, no);
  }

  /// The bits of a float as an integer, and back; integer arithmetic on them.
  const UOp* Bits(const UOp* a) const { return graph_.Make(Op::kBitcast, bits_type(), {a}); }
  const UOp* FromBits(const UOp* a) const { return graph_.Make(Op::kBitcast, type_, {a}); }
  const UOp* IntegerOp(Op op, const UOp* a, const UOp* b) const { return Binary(graph_, op, a, b); }
  /// Value conversion to the type of this builder.
  const UOp* Convert(const UOp* a) const { return Cast(graph_, a, type_); }

  /// The low bits of a word of the other width.
  const UOp* ConvertBits(const UOp* a) const { return Cast(graph_, a, bits_type()); }

  /// Bits of the mantissa that are stored: where the exponent begins.
  int exponent_place() const { return Select(23, 52); }
  int exponent_bias() const { return Select(127, 1023); }

  /// c[0] + c[1]·x + c[2]·x² + …
  const UOp* Polynomial(std::span<const double> c, const UOp* x) const {
    const UOp* sum = Number(c.back());
    for (size_t i = c.size() - 1; i-- > 0;) sum = MulAdd(sum, x, Number(c[i]));
    return sum;
  }

  /// The sign bit of a float, in its place.
  const UOp* SignBit(const UOp* a) const {
    return IntegerOp(Op::kAnd, Bits(a), Integer(MinInteger(bits_type().scalar)));
  }
  /// `a`, which must not be negative, with the sign of `sign`.
  const UOp* WithSign(const UOp* a, const UOp* sign) const {
    return FromBits(IntegerOp(Op::kOr, Bits(a), SignBit(sign)));
  }

  /// A float rounded to a multiple of `step`, and a word whose low bits are that multiple.
  struct Rounded {
    const UOp* value;
    const UOp* count;
  };

  /// x·factor rounded to the nearest multiple of `step` (a power of two): added to 1.5·2^23·step, a
  /// float has no digits below `step` left, and the number of steps stands in the low end of its
  /// mantissa. So no conversion to an integer is needed, which would have to clamp. `offset` is
  /// added to the count. Good for counts of less than 22 bits (51 in f64).
  const UOp* RoundingConstant(double step, int64_t offset) const {
    return Number((Select(0x1.8p23, 0x1.8p52) + static_cast<double>(offset)) * step);
  }
  Rounded Round(const UOp* x, double factor, double step, int64_t offset = 0) const {
    const UOp* constant = RoundingConstant(step, offset);
    const UOp* sum = factor == 1 ? Add(x, constant) : MulAdd(x, Number(factor), constant);
    return {Sub(sum, constant), Bits(sum)};
  }

  /// 2^count, for a count that has the exponent bias in it. What stands above is shifted out.
  const UOp* PowerOfTwo(const UOp* count) const {
    return FromBits(IntegerOp(Op::kShl, count, Integer(exponent_place())));
  }

  /// x − k·(part[0] + part[1] + …), the reduction of Cody and Waite.
  const UOp* Reduce(const UOp* x, const UOp* k, std::span<const double> parts) const {
    for (const double part : parts) x = MulAdd(k, Number(-part), x);
    return x;
  }

 private:
  DType bits_type() const { return {is_f64() ? ScalarType::kI64 : ScalarType::kI32, type_.lanes}; }

  UOpGraph& graph_;
  DType type_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_MATH_BUILDER_H_
