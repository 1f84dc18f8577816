#include "codegen/decompose_float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen/decompose_math.h"
#include "rewrite/build.h"
#include "rewrite/text.h"
#include "rewrite/verify_node.h"
#include "tests/unit/elementwise_evaluator.h"

namespace quern {
namespace {

using MulAdd = ElementwiseEvaluator::MulAdd;

const UOp* Input(UOpGraph& g, DType type, int slot = 0) {
  return Load(g, Index(g, Param(g, type, slot, 1), IndexConst(g, 0)));
}

bool IsFloat16(DType t) { return t.scalar == ScalarType::kF16 || t.scalar == ScalarType::kBF16; }

// What the pass promises of its result.
void ExpectNoFloat16Arithmetic(const UOp* root) {
  for (const UOp* u : Toposort(root)) {
    EXPECT_TRUE(VerifyNode(u).ok()) << VerifyNode(u);
    if (!IsElementwise(u->op) || u->op == Op::kWhere || u->op == Op::kBitcast) continue;
    if (u->op == Op::kCast) {
      const DType from = u->src(0)->dtype;
      if (IsFloat16(u->dtype)) EXPECT_EQ(from.scalar, ScalarType::kF32) << ToText(root);
      if (IsFloat16(from)) EXPECT_EQ(u->dtype.scalar, ScalarType::kF32) << ToText(root);
      continue;
    }
    for (const UOp* s : u->src()) EXPECT_FALSE(IsFloat16(s->dtype)) << ToText(root);
  }
}

double FromBits(DType type, uint64_t bits) { return ScalarFromBits(type.scalar, bits).f; }

class Float16Test : public ::testing::TestWithParam<ScalarType> {
 protected:
  DType type() const { return GetParam(); }
};

// The meaning of the operation does not change: Evaluate is docs/semantics.md in code.
TEST_P(Float16Test, OperationsKeepTheirMeaning) {
  constexpr Op kOps[] = {Op::kAdd,    Op::kSub, Op::kMul, Op::kDiv,   Op::kMax,
                         Op::kMin,    Op::kLt,  Op::kLe,  Op::kEq,    Op::kNe,
                         Op::kMulAdd, Op::kNeg, Op::kAbs, Op::kFloor, Op::kSqrt};
  std::mt19937 random(1);
  for (const Op op : kOps) {
    UOpGraph g;
    const DType result = GetOpInfo(op).comparison ? kBoolType : type();
    std::vector<const UOp*> inputs;
    for (int i = 0; i < GetOpInfo(op).min_sources; ++i) inputs.push_back(Input(g, type(), i));
    const UOp* done = DecomposeFloat16(g, g.Make(op, result, inputs));
    EXPECT_EQ(done->dtype, result);
    ExpectNoFloat16Arithmetic(done);
    ElementwiseEvaluator f(done, MulAdd::kRoundedOnce);
    for (int i = 0; i < 100000; ++i) {
      Scalar s[3];
      for (Scalar& x : s) x = ScalarFromBits(GetParam(), random() & 0xffff);
      bool overflow = false;
      const Scalar expected = Evaluate(op, GetParam(), result.scalar, s, &overflow);
      const Scalar got = f(s);
      if (result == kBoolType) {
        ASSERT_EQ(got.i, expected.i) << OpName(op) << " of " << s[0].f << ", " << s[1].f;
      } else if (!std::isnan(expected.f) || !std::isnan(got.f)) {
        ASSERT_EQ(std::bit_cast<uint64_t>(got.f), std::bit_cast<uint64_t>(expected.f))
            << OpName(op) << " of " << s[0].f << ", " << s[1].f;
      }
    }
  }
}

TEST_P(Float16Test, ElementaryFunctionsAreComputedInF32) {
  for (const Op op : {Op::kExp, Op::kExp2, Op::kLog, Op::kLog2, Op::kSin, Op::kTanh, Op::kErf}) {
    for (const bool native : {false, true}) {
      UOpGraph g;
      const UOp* done = DecomposeFloat16(g, Unary(g, op, Input(g, type())), native);
      EXPECT_EQ(ToText(done).find(std::string(OpName(op)) + ".f32") != std::string::npos, true);
      ExpectNoFloat16Arithmetic(done);
      ElementwiseEvaluator f(DecomposeMath(g, done), MulAdd::kRoundedTwice);
      EXPECT_NEAR(f(0.5),
                  Evaluate(op, ScalarType::kF64, ScalarType::kF64,
                           std::vector<Scalar>{{.f = 0.5}}.data(), nullptr)
                      .f,
                  0.01);
    }
  }
}

TEST_P(Float16Test, ConversionsGoByWayOfF32) {
  constexpr ScalarType kOthers[] = {ScalarType::kBool, ScalarType::kI8,   ScalarType::kI32,
                                    ScalarType::kI64,  ScalarType::kU64,  ScalarType::kF64,
                                    ScalarType::kF16,  ScalarType::kBF16, ScalarType::kIndex};
  for (const ScalarType other : kOthers) {
    if (other == GetParam()) continue;
    UOpGraph g;
    ExpectNoFloat16Arithmetic(DecomposeFloat16(g, Cast(g, Input(g, type()), other)));
    if (other == ScalarType::kIndex) continue;
    ExpectNoFloat16Arithmetic(DecomposeFloat16(g, Cast(g, Input(g, other), type())));
  }
}

TEST(DecomposeFloat16Test, DoublesAreRoundedTwice) {
  // Halfway between 1 and the next f16, and a little more than f32 can hold: to f32 it is rounded
  // to the tie, from there to even.
  UOpGraph g;
  ElementwiseEvaluator f(DecomposeFloat16(g, Cast(g, Input(g, kF64Type), kF16Type)),
                         MulAdd::kRoundedOnce);
  EXPECT_EQ(f(1 + 0x1p-11 + 0x1p-40), 1);
  EXPECT_EQ(f(1 + 0x1p-11 + 0x1p-20), 1 + 0x1p-10);
}

TEST_P(Float16Test, IntermediateResultsAreRounded) {
  UOpGraph g;
  const UOp* x = Input(g, type());
  const UOp* one = FloatConst(g, type(), 1);
  const UOp* done = DecomposeFloat16(g, Binary(g, Op::kSub, Add(g, x, one), one));
  ElementwiseEvaluator f(done, MulAdd::kRoundedOnce);
  EXPECT_EQ(f(FromBits(type(), 1)), 0);  // the smallest number is lost beside 1
  int casts_to_type = 0;
  for (const UOp* u : Toposort(done)) {
    casts_to_type += u->op == Op::kCast && u->dtype == type() ? 1 : 0;
    // Constants are widened at once.
    if (u->op == Op::kConst && IsFloat(u->dtype)) EXPECT_EQ(u->dtype, kF32Type);
  }
  EXPECT_EQ(casts_to_type, 2);
}

TEST_P(Float16Test, WhatOnlyMovesValuesStays) {
  UOpGraph g;
  const UOp* i = Range(g, 8, 0, AxisType::kLoop);
  const UOp* k = Range(g, 4, 1, AxisType::kReduce);
  const UOp* x = Load(g, Index(g, Param(g, type(), 0, 8), i));
  const UOp* condition = Lt(g, i, IndexConst(g, 3));
  const UOp* value = Where(g, condition, x, FloatConst(g, type(), 2));
  const UOp* bits = g.Make(Op::kBitcast, ScalarType::kI16, {value});
  const UOp* back = g.Make(Op::kBitcast, type(), {bits});
  const UOp* sum = Reduce(g, Op::kAdd, back, std::vector<const UOp*>{k});
  const UOp* to_f32 = Cast(g, Cast(g, sum, kF32Type), type());
  const UOp* store = Store(g, Index(g, Param(g, type(), 1, 8), i), to_f32);
  const UOp* sink = Sink(g, std::vector<const UOp*>{store});
  const size_t size = g.size();
  EXPECT_EQ(DecomposeFloat16(g, sink), sink);
  EXPECT_EQ(g.size(), size);
}

TEST_P(Float16Test, VectorsKeepTheirLanes) {
  UOpGraph g;
  const UOp* x = g.Make(Op::kBroadcast, type().WithLanes(8), {Input(g, type())});
  const UOp* done = DecomposeFloat16(g, Add(g, x, x));
  EXPECT_EQ(done->dtype, type().WithLanes(8));
  ExpectNoFloat16Arithmetic(done);
}

INSTANTIATE_TEST_SUITE_P(All, Float16Test, ::testing::Values(ScalarType::kF16, ScalarType::kBF16),
                         [](const auto& p) { return std::string(ScalarTypeName(p.param)); });

TEST(DecomposeFloat16Test, NativeArithmeticIsThatOfF16Only) {
  UOpGraph g;
  const UOp* half = Add(g, Input(g, kF16Type), FloatConst(g, kF16Type, 1));
  EXPECT_EQ(DecomposeFloat16(g, half, true), half);
  EXPECT_NE(DecomposeFloat16(g, half, false), half);
  const UOp* brain = Add(g, Input(g, kBF16Type), FloatConst(g, kBF16Type, 1));
  ExpectNoFloat16Arithmetic(DecomposeFloat16(g, brain, true));
}

TEST(DecomposeFloat16Test, OtherTypesAreLeftAlone) {
  UOpGraph g;
  const UOp* x = Cast(g, Add(g, Input(g, kF64Type), FloatConst(g, kF64Type, 1)), kI32Type);
  EXPECT_EQ(DecomposeFloat16(g, x), x);
}

}  // namespace
}  // namespace quern
