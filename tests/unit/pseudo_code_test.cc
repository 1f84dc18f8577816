#include "rewrite/pseudo_code.h"

#include <gtest/gtest.h>

#include "rewrite/build.h"
#include "rewrite/text.h"

namespace quern {
namespace {

std::string Printed(std::string_view text) {
  UOpGraph g;
  const absl::StatusOr<const UOp*> sink = ParseText(g, text);
  EXPECT_TRUE(sink.ok()) << sink.status();
  return sink.ok() ? PseudoCode(*sink) : "";
}

TEST(PseudoCodeTest, RowSum) {
  EXPECT_EQ(Printed("%i = range.index size=3 axis=0 type=LOOP\n"
                    "%k = range.index size=4 axis=1 type=REDUCE\n%x = param.f32 slot=0 size=12\n"
                    "%y = param.f32 slot=1 size=3\n%four = const.index 4\n"
                    "%row = mul.index %i, %four\n%at = add.index %row, %k\n"
                    "%xi = index.f32 %x, %at\n%v = load.f32 %xi\n%r = reduce.f32 op=add %v, %k\n"
                    "%yi = index.f32 %y, %i\n%s = store %yi, %r\n%z = sink %s\n"),
            "param f32 p0[12]\n"
            "param f32 p1[3]\n"
            "for i0 in 3:\n"
            "  t0 = 0\n"
            "  for k1 in 4 (REDUCE):\n"
            "    t0 += p0[i0 * 4 + k1]\n"
            "  p1[i0] = t0\n");
}

TEST(PseudoCodeTest, SoftmaxNamesWhatItUsesTwice) {
  EXPECT_EQ(Printed("%x = param.f32 slot=0 size=4\n%i = range.index size=2 axis=0 type=THREAD\n"
                    "%j = range.index size=2 axis=1 type=LOOP\n"
                    "%k = range.index size=2 axis=2 type=REDUCE\n"
                    "%two = const.index 2\n%row = mul.index %i, %two\n%ij = add.index %row, %j\n"
                    "%ik = add.index %row, %k\n%xik = index.f32 %x, %ik\n%a = load.f32 %xik\n"
                    "%xij = index.f32 %x, %ij\n%b = load.f32 %xij\n%m = reduce.f32 op=max %a, %k\n"
                    "%am = sub.f32 %a, %m\n%ae = exp.f32 %am\n%s = reduce.f32 op=add %ae, %k\n"
                    "%bm = sub.f32 %b, %m\n%be = exp.f32 %bm\n%y = div.f32 %be, %s\n"
                    "%o = param.f32 slot=1 size=4\n%oij = index.f32 %o, %ij\n%w = store %oij, %y\n"
                    "%z = sink %w\n"),
            "param f32 p0[4]\n"
            "param f32 p1[4]\n"
            "for i0 in 2 (THREAD):\n"
            "  t0 = lowest\n"
            "  for k2 in 2 (REDUCE):\n"
            "    t0 = max(t0, p0[i0 * 2 + k2])\n"
            "  t1 = 0\n"
            "  for k2 in 2 (REDUCE):\n"
            "    t1 += exp(p0[i0 * 2 + k2] - t0)\n"
            "  for i1 in 2:\n"
            "    p1[i0 * 2 + i1] = exp(p0[i0 * 2 + i1] - t0) / t1\n");
}

TEST(PseudoCodeTest, LoweredForm) {
  EXPECT_EQ(
      Printed("%t = range.index size=3 axis=0 type=THREAD\n"
              "%k = range.index size=2 axis=1 type=REDUCE\n"
              "%lanes = lanes.indexx4\n%acc = register.f32 slot=0 size=4\n"
              "%at = index.f32x4 %acc, %lanes\n%zero = const.f32x4 0\n%init = store %at, %zero\n"
              "%four = const.index 4\n%k4 = mul.index %k, %four\n"
              "%wide = broadcast.indexx4 %k4\n%offset = add.indexx4 %wide, %lanes\n"
              "%x = param.f32 slot=0 size=8\n%one = const.index 1\n%gate = lt.bool %t, %one\n"
              "%xi = index.f32x4 %x, %offset, %gate\n%xv = load.f32x4 %xi\n%old = load.f32x4 %at\n"
              "%new = add.f32x4 %old, %xv\n%step = store %at, %new\n%loop = loop %k, %step\n"
              "%sum = horizontal.f32 op=add lanes=1 %old\n%p = scratch.f32 slot=0 size=3\n"
              "%pt = index.f32 %p, %t\n%keep = store %pt, %sum\n%b = block %init, %loop, %keep\n"
              "%threads = loop %t, %b\n%first = phase %threads\n"
              "%r = range.index size=3 axis=0 type=LOOP\n%pr = index.f32 %p, %r\n"
              "%pv = load.f32 %pr\n%y = param.f32 slot=1 size=3\n%yr = index.f32 %y, %r\n"
              "%w = store %yr, %pv\n%out = loop %r, %w\n%two = phase %out\n"
              "%z = sink %first, %two\n"),
      "param f32 p0[8]\n"
      "param f32 p1[3]\n"
      "scratch f32 s0[3]\n"
      "register f32 r0[4]\n"
      "# phase 0\n"
      "for i0 in 3 (THREAD):\n"
      "  r0[lanes4] = 0.0\n"
      "  for k1 in 2 (REDUCE):\n"
      "    r0[lanes4] = r0[lanes4] + p0[k1 * 4 + lanes4 if i0 < 1]\n"
      "  s0[i0] = lanes_add(r0[lanes4])\n"
      "# phase 1\n"
      "for i0 in 3:\n"
      "  p1[i0] = s0[i0]\n");
}

TEST(PseudoCodeTest, WhatIsNoKernel) {
  UOpGraph g;
  EXPECT_EQ(PseudoCode(IndexConst(g, 1)), "# not a kernel: a kernel is a sink, not a const\n");
}

TEST(ExpressionTextTest, ParenthesesWhereTheyAreNeeded) {
  UOpGraph g;
  const UOp* i = Range(g, 9, 0, AxisType::kLoop);
  const UOp* k = Range(g, 9, 1, AxisType::kReduce);
  const UOp* c = IndexConst(g, -3);
  EXPECT_EQ(ExpressionText(Mul(g, Add(g, i, k), i)), "(i0 + k1) * i0");
  EXPECT_EQ(ExpressionText(Add(g, Add(g, i, k), i)), "i0 + k1 + i0");
  EXPECT_EQ(ExpressionText(Add(g, i, Add(g, k, i))), "i0 + (k1 + i0)");
  EXPECT_EQ(ExpressionText(Sub(g, i, Sub(g, k, i))), "i0 - (k1 - i0)");
  EXPECT_EQ(ExpressionText(Add(g, i, c)), "i0 - 3");
  EXPECT_EQ(ExpressionText(Mul(g, i, c)), "i0 * -3");
  EXPECT_EQ(ExpressionText(Sub(g, i, c)), "i0 - -3");
  EXPECT_EQ(ExpressionText(Unary(g, Op::kNeg, Add(g, i, k))), "-(i0 + k1)");
  EXPECT_EQ(ExpressionText(Binary(g, Op::kFloorMod, Binary(g, Op::kFloorDiv, i, k), i)),
            "i0 // k1 % i0");
  EXPECT_EQ(ExpressionText(Binary(g, Op::kTruncDiv, i, k)), "truncdiv(i0, k1)");
  const UOp* less = Lt(g, i, k);
  EXPECT_EQ(ExpressionText(And(g, Unary(g, Op::kNot, less), Binary(g, Op::kOr, less, less))),
            "!(i0 < k1) && (i0 < k1 || i0 < k1)");
  EXPECT_EQ(ExpressionText(Add(g, Where(g, less, i, k), i)), "(i0 < k1 ? i0 : k1) + i0");
  EXPECT_EQ(ExpressionText(Cast(g, Add(g, i, k), kF32Type)), "f32(i0 + k1)");
  const UOp* x = Load(g, Index(g, Param(g, kF32Type, 2, 9), i, less));
  EXPECT_EQ(ExpressionText(Binary(g, Op::kMax, x, FloatConst(g, kF32Type, 2))),
            "max(p2[i0 if i0 < k1], 2.0)");
  EXPECT_EQ(ExpressionText(Reduce(g, Op::kMul, x, std::vector<const UOp*>{k})),
            "mul[k1](p2[i0 if i0 < k1])");
}

TEST(ExpressionTextTest, SharedValuesDoNotExplode) {
  UOpGraph g;
  const UOp* x = Range(g, 9, 0, AxisType::kLoop);
  for (int i = 0; i < 100; ++i) x = Add(g, x, x);
  EXPECT_LT(ExpressionText(x).size(), 2000u);
  const UOp* store = Store(g, Index(g, Param(g, kI64Type, 0, 9), x), Cast(g, x, kI64Type));
  EXPECT_LT(PseudoCode(Sink(g, std::vector<const UOp*>{store})).size(), 20000u);
}

}  // namespace
}  // namespace quern
