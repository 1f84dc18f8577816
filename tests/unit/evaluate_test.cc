#include "rewrite/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rewrite/build.h"
#include "tests/unit/node_value.h"

namespace quern {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

MATCHER(IsNaN, "") { return std::isnan(arg); }

int64_t Int(Op op, ScalarType type, int64_t a, int64_t b = 0) {
  UOpGraph g;
  const auto make = [&](int64_t v) {
    return type == ScalarType::kIndex ? IndexConst(g, v) : IntConst(g, type, v);
  };
  return ValueOf(g, GetOpInfo(op).min_sources == 1 ? Unary(g, op, make(a))
                                                   : Binary(g, op, make(a), make(b)))
      .i;
}

double Float(Op op, ScalarType type, double a, double b = 0) {
  UOpGraph g;
  const UOp* x = FloatConst(g, type, a);
  return ValueOf(g, GetOpInfo(op).min_sources == 1 ? Unary(g, op, x)
                                                   : Binary(g, op, x, FloatConst(g, type, b)))
      .f;
}

bool FloatCompare(Op op, double a, double b) {
  UOpGraph g;
  return ValueOf(g, Binary(g, op, FloatConst(g, kF32Type, a), FloatConst(g, kF32Type, b))).i != 0;
}

Scalar CastOf(DType from, double value, DType to) {
  UOpGraph g;
  return ValueOf(g, Cast(g, NumberConst(g, from, value), to));
}

TEST(EvaluateTest, IntegersWrap) {
  const ScalarType i8 = ScalarType::kI8;
  const ScalarType u8 = ScalarType::kU8;
  const ScalarType i64 = ScalarType::kI64;
  EXPECT_EQ(Int(Op::kAdd, i8, 127, 1), -128);
  EXPECT_EQ(Int(Op::kSub, i8, -128, 1), 127);
  EXPECT_EQ(Int(Op::kSub, u8, 0, 1), 255);
  EXPECT_EQ(Int(Op::kMul, i8, 100, 100), 16);
  EXPECT_EQ(Int(Op::kMul, ScalarType::kU16, 65535, 65535), 1);
  EXPECT_EQ(Int(Op::kNeg, i8, -128), -128);
  EXPECT_EQ(Int(Op::kAbs, i8, -128), -128);
  EXPECT_EQ(Int(Op::kAbs, i8, -5), 5);
  EXPECT_EQ(Int(Op::kAbs, u8, 200), 200);
  EXPECT_EQ(Int(Op::kNeg, u8, 1), 255);
  EXPECT_EQ(Int(Op::kAdd, i64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(Int(Op::kNeg, i64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(Int(Op::kNot, i8, 5), -6);
  EXPECT_EQ(Int(Op::kNot, u8, 5), 250);
}

TEST(EvaluateTest, DivisionRoundsAsItsNameSays) {
  for (ScalarType t : {ScalarType::kI8, ScalarType::kI32, ScalarType::kI64, ScalarType::kIndex}) {
    EXPECT_EQ(Int(Op::kFloorDiv, t, -7, 2), -4);
    EXPECT_EQ(Int(Op::kFloorMod, t, -7, 2), 1);
    EXPECT_EQ(Int(Op::kFloorMod, t, 7, -2), -1);
    EXPECT_EQ(Int(Op::kFloorDiv, t, 7, -2), -4);
    EXPECT_EQ(Int(Op::kFloorDiv, t, -6, 2), -3);
    EXPECT_EQ(Int(Op::kFloorMod, t, -6, 2), 0);
    EXPECT_EQ(Int(Op::kTruncDiv, t, -7, 2), -3);
    EXPECT_EQ(Int(Op::kTruncMod, t, -7, 2), -1);
    EXPECT_EQ(Int(Op::kTruncMod, t, 7, -2), 1);
    for (Op op : {Op::kFloorDiv, Op::kTruncDiv}) EXPECT_EQ(Int(op, t, -7, 0), 0);
    for (Op op : {Op::kFloorMod, Op::kTruncMod}) {
      EXPECT_EQ(Int(op, t, -7, 0), -7);
      EXPECT_EQ(Int(op, t, -7, -1), 0);
    }
  }
  for (Op op : {Op::kFloorDiv, Op::kTruncDiv}) {
    EXPECT_EQ(Int(op, ScalarType::kI8, -128, -1), -128);
    EXPECT_EQ(Int(op, ScalarType::kI32, INT32_MIN, -1), INT32_MIN);
    EXPECT_EQ(Int(op, ScalarType::kI64, INT64_MIN, -1), INT64_MIN);
    EXPECT_EQ(Int(op, ScalarType::kU64, -1, 2), INT64_MAX);
    EXPECT_EQ(Int(op, ScalarType::kU8, 255, 2), 127);
  }
  EXPECT_EQ(Int(Op::kFloorMod, ScalarType::kI64, INT64_MIN, -1), 0);
  EXPECT_EQ(Int(Op::kTruncMod, ScalarType::kI64, INT64_MIN, -1), 0);
  EXPECT_EQ(Int(Op::kFloorMod, ScalarType::kU64, -1, 10), 5);  // 2^64 - 1 mod 10
}

TEST(EvaluateTest, ShiftsTakeTheirAmountModuloTheWidth) {
  EXPECT_EQ(Int(Op::kShl, ScalarType::kI8, 1, 7), -128);
  EXPECT_EQ(Int(Op::kShl, ScalarType::kI8, 1, 9), 2);
  EXPECT_EQ(Int(Op::kShl, ScalarType::kI32, 1, -1), INT32_MIN);
  EXPECT_EQ(Int(Op::kShr, ScalarType::kI8, -128, 1), -64);
  EXPECT_EQ(Int(Op::kShr, ScalarType::kU8, 128, 1), 64);
  EXPECT_EQ(Int(Op::kShr, ScalarType::kU8, 128, 8), 128);
  EXPECT_EQ(Int(Op::kShr, ScalarType::kI64, INT64_MIN, 63), -1);
  EXPECT_EQ(Int(Op::kShr, ScalarType::kU64, INT64_MIN, 63), 1);
}

TEST(EvaluateTest, BitsAndOrder) {
  EXPECT_EQ(Int(Op::kAnd, ScalarType::kI8, -4, 7), 4);
  EXPECT_EQ(Int(Op::kOr, ScalarType::kU8, 0xf0, 0x0f), 0xff);
  EXPECT_EQ(Int(Op::kXor, ScalarType::kI32, -1, 1), -2);
  EXPECT_EQ(Int(Op::kMax, ScalarType::kI64, -1, 1), 1);
  EXPECT_EQ(Int(Op::kMax, ScalarType::kU64, -1, 1), -1);
  EXPECT_EQ(Int(Op::kMin, ScalarType::kU64, -1, 1), 1);
  EXPECT_EQ(Int(Op::kLt, ScalarType::kI64, -1, 1), 1);
  EXPECT_EQ(Int(Op::kLt, ScalarType::kU64, -1, 1), 0);
  EXPECT_EQ(Int(Op::kLe, ScalarType::kI8, 3, 3), 1);
  EXPECT_EQ(Int(Op::kEq, ScalarType::kI8, 3, 4), 0);
  EXPECT_EQ(Int(Op::kNe, ScalarType::kIndex, 3, 4), 1);
}

TEST(EvaluateTest, BoolIsAnAlgebraOfItsOwn) {
  for (int a : {0, 1}) {
    EXPECT_EQ(Int(Op::kNot, ScalarType::kBool, a), !a);
    for (int b : {0, 1}) {
      for (Op op : {Op::kAdd, Op::kOr, Op::kMax})
        EXPECT_EQ(Int(op, ScalarType::kBool, a, b), a | b);
      for (Op op : {Op::kMul, Op::kAnd, Op::kMin})
        EXPECT_EQ(Int(op, ScalarType::kBool, a, b), a & b);
      EXPECT_EQ(Int(Op::kXor, ScalarType::kBool, a, b), a ^ b);
      EXPECT_EQ(Int(Op::kLt, ScalarType::kBool, a, b), a < b);
    }
  }
}

TEST(EvaluateTest, FloatsRoundOncePerOperation) {
  EXPECT_EQ(Float(Op::kAdd, ScalarType::kF32, 16777216, 1), 16777216);
  EXPECT_EQ(Float(Op::kAdd, ScalarType::kF64, 16777216, 1), 16777217);
  EXPECT_EQ(Float(Op::kAdd, ScalarType::kF16, 2048, 1), 2048);
  EXPECT_EQ(Float(Op::kAdd, ScalarType::kF16, 2048, 3), 2052);  // Ties to even.
  EXPECT_EQ(Float(Op::kAdd, ScalarType::kBF16, 256, 1), 256);
  EXPECT_EQ(Float(Op::kMul, ScalarType::kF16, 300, 300), kInf);
  EXPECT_EQ(Float(Op::kMul, ScalarType::kF32, 1e-30, 1e-10), static_cast<float>(1e-30f * 1e-10f));
  EXPECT_EQ(Float(Op::kDiv, ScalarType::kF32, 1, 3), 1.0f / 3.0f);
  EXPECT_EQ(Float(Op::kDiv, ScalarType::kF32, -1, 0), -kInf);
  EXPECT_THAT(Float(Op::kDiv, ScalarType::kF32, 0, 0), IsNaN());
  EXPECT_EQ(Float(Op::kSqrt, ScalarType::kF32, 2), std::sqrt(2.0f));
  EXPECT_THAT(Float(Op::kSqrt, ScalarType::kF32, -1), IsNaN());
  EXPECT_EQ(Float(Op::kFloor, ScalarType::kF32, -1.5), -2);
  EXPECT_TRUE(std::signbit(Float(Op::kNeg, ScalarType::kF32, 0)));
  EXPECT_FALSE(std::signbit(Float(Op::kAbs, ScalarType::kF32, -0.0)));
  EXPECT_TRUE(std::signbit(Float(Op::kFloor, ScalarType::kF32, -0.0)));
}

TEST(EvaluateTest, MaxAndMinPropagateNaNFromEitherSide) {
  for (ScalarType t : {ScalarType::kF16, ScalarType::kBF16, ScalarType::kF32, ScalarType::kF64}) {
    for (Op op : {Op::kMax, Op::kMin}) {
      EXPECT_THAT(Float(op, t, kNaN, 1), IsNaN());
      EXPECT_THAT(Float(op, t, 1, kNaN), IsNaN());
      // Of two zeros the second.
      EXPECT_TRUE(std::signbit(Float(op, t, 0.0, -0.0)));
      EXPECT_FALSE(std::signbit(Float(op, t, -0.0, 0.0)));
    }
    EXPECT_EQ(Float(Op::kMax, t, -1, 3), 3);
    EXPECT_EQ(Float(Op::kMin, t, -1, kInf), -1);
  }
}

TEST(EvaluateTest, ComparisonsWithNaN) {
  for (Op op : {Op::kLt, Op::kLe, Op::kEq}) {
    EXPECT_FALSE(FloatCompare(op, kNaN, 1));
    EXPECT_FALSE(FloatCompare(op, 1, kNaN));
    EXPECT_FALSE(FloatCompare(op, kNaN, kNaN));
  }
  EXPECT_TRUE(FloatCompare(Op::kNe, kNaN, kNaN));
  EXPECT_TRUE(FloatCompare(Op::kEq, -0.0, 0.0));
  EXPECT_FALSE(FloatCompare(Op::kLt, -0.0, 0.0));
}

TEST(EvaluateTest, Transcendentals) {
  const ScalarType t = ScalarType::kF32;
  EXPECT_EQ(Float(Op::kExp, t, 1), std::exp(1.0f));
  EXPECT_EQ(Float(Op::kExp, t, -kInf), 0);
  EXPECT_EQ(Float(Op::kExp, t, 100), kInf);
  EXPECT_EQ(Float(Op::kExp2, t, 10), 1024);
  EXPECT_EQ(Float(Op::kLog, t, 0), -kInf);
  EXPECT_THAT(Float(Op::kLog, t, -1), IsNaN());
  EXPECT_EQ(Float(Op::kLog2, t, 8), 3);
  EXPECT_THAT(Float(Op::kSin, t, kInf), IsNaN());
  EXPECT_EQ(Float(Op::kTanh, t, kInf), 1);
  EXPECT_EQ(Float(Op::kErf, t, -kInf), -1);
  for (Op op : {Op::kSin, Op::kTanh, Op::kErf}) EXPECT_TRUE(std::signbit(Float(op, t, -0.0)));
  for (Op op : {Op::kExp, Op::kExp2, Op::kLog, Op::kLog2, Op::kSin, Op::kTanh, Op::kErf}) {
    EXPECT_THAT(Float(op, t, kNaN), IsNaN());
  }
}

TEST(EvaluateTest, CastsWrapRoundAndSaturate) {
  EXPECT_EQ(CastOf(kI32Type, 300, ScalarType::kU8).i, 44);
  EXPECT_EQ(CastOf(kI32Type, -1, ScalarType::kU64).i, -1);
  EXPECT_EQ(CastOf(kIndexType, 4294967297.0, kI32Type).i, 1);
  EXPECT_EQ(CastOf(kI32Type, 256, kBoolType).i, 1);
  EXPECT_EQ(CastOf(kBoolType, 1, kF32Type).f, 1);
  EXPECT_EQ(CastOf(kF32Type, kNaN, kBoolType).i, 1);
  EXPECT_EQ(CastOf(kF32Type, -0.0, kBoolType).i, 0);
  EXPECT_EQ(CastOf(kF32Type, 0.5, kBoolType).i, 1);
  EXPECT_EQ(CastOf(kF32Type, -1.9, kI32Type).i, -1);
  EXPECT_EQ(CastOf(kF32Type, 1e10, kI32Type).i, INT32_MAX);
  EXPECT_EQ(CastOf(kF32Type, -kInf, kI8Type).i, -128);
  EXPECT_EQ(CastOf(kF32Type, -5, ScalarType::kU8).i, 0);
  EXPECT_EQ(CastOf(kF32Type, 255.9, ScalarType::kU8).i, 255);
  EXPECT_EQ(CastOf(kF64Type, 1e19, ScalarType::kU64).i,
            static_cast<int64_t>(10000000000000000000u));
  EXPECT_EQ(CastOf(kF64Type, 1e20, ScalarType::kU64).i, -1);
  EXPECT_EQ(CastOf(kF64Type, 0x1p63, kI64Type).i, INT64_MAX);
  EXPECT_EQ(CastOf(kF64Type, -0x1p63, kI64Type).i, INT64_MIN);
  EXPECT_EQ(CastOf(kF64Type, kNaN, kI64Type).i, 0);
  EXPECT_EQ(CastOf(kF64Type, 65520, kF16Type).f, kInf);
  EXPECT_EQ(CastOf(kF64Type, 65519, kF16Type).f, 65504);
  EXPECT_EQ(CastOf(kF64Type, 1e300, kF32Type).f, kInf);
  EXPECT_EQ(CastOf(kI32Type, 16777217, kF32Type).f, 16777216);
  UOpGraph g;
  // By way of double these would be rounded twice, to the even neighbour of a tie.
  const int64_t above_tie = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(ValueOf(g, Cast(g, IntConst(g, kI64Type, above_tie), kF32Type)).f,
            static_cast<float>(above_tie));
  EXPECT_EQ(ValueOf(g, Cast(g, IntConst(g, ScalarType::kU64, -1), kF32Type)).f, 0x1p64);
}

TEST(EvaluateTest, BitcastWhereAndMulAdd) {
  UOpGraph g;
  EXPECT_EQ(ValueOf(g, g.Make(Op::kBitcast, kI32Type, {FloatConst(g, kF32Type, 1)})).i, 0x3f800000);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kBitcast, kF16Type, {IntConst(g, ScalarType::kU16, 0x3c00)})).f,
            1);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kBitcast, ScalarType::kU8, {IntConst(g, kI8Type, -1)})).i, 255);
  EXPECT_EQ(ValueOf(g, Where(g, BoolConst(g, true), FloatConst(g, kF32Type, 1),
                             FloatConst(g, kF32Type, kNaN)))
                .f,
            1);
  const UOp* x = IntConst(g, kI8Type, 100);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kMulAdd, kI8Type, {x, x, x})).i, 116);
  const UOp* y = FloatConst(g, kF32Type, 3);
  EXPECT_EQ(ValueOf(g, g.Make(Op::kMulAdd, kF32Type, {y, y, y})).f, 12);
}

}  // namespace
}  // namespace quern
