#include "rewrite/linear.h"

#include <gtest/gtest.h>

#include "rewrite/build.h"

namespace quern {
namespace {

class LinearTest : public testing::Test {
 protected:
  const UOp* C(int64_t v) { return IndexConst(g, v); }
  const UOp* R(int64_t size, int axis) { return Range(g, size, axis, AxisType::kLoop); }
  UOpGraph g;
};

TEST_F(LinearTest, CollectsCoefficients) {
  const UOp* x = R(8, 0);
  const UOp* y = R(8, 1);
  const UOp* u = Sub(g, Mul(g, Add(g, x, Mul(g, y, C(3))), C(4)), Add(g, x, C(7)));
  const LinearForm form = ToLinear(u);
  EXPECT_EQ(form.terms.size(), 2u);
  EXPECT_EQ(form.CoefficientOf(x), 3);
  EXPECT_EQ(form.CoefficientOf(y), 12);
  EXPECT_EQ(form.constant, -7);
  EXPECT_EQ(form.terms[0].first, x);  // Outer loops first.
}

TEST_F(LinearTest, EveryOrderGivesOneSpelling) {
  const UOp* x = R(8, 0);
  const UOp* y = R(8, 1);
  const UOp* d = Binary(g, Op::kFloorDiv, y, C(3));
  const UOp* a = Add(g, Add(g, Mul(g, x, C(2)), d), Add(g, y, C(5)));
  const UOp* b = Add(g, Add(g, C(5), Add(g, y, d)), Add(g, x, x));
  EXPECT_EQ(FromLinear(g, ToLinear(a)), FromLinear(g, ToLinear(b)));
  EXPECT_EQ(FromLinear(g, ToLinear(Sub(g, a, b))), C(0));
}

TEST_F(LinearTest, ATermOfAVectorFormStandsForItsBroadcast) {
  const UOp* x = R(8, 0);
  const UOp* lanes = g.Make(Op::kLanes, kIndexType.WithLanes(4), {});
  auto broadcast = [&](const UOp* u) { return g.Make(Op::kBroadcast, u->dtype.WithLanes(4), {u}); };
  const UOp* u = Add(g, broadcast(Mul(g, x, C(16))), Add(g, lanes, broadcast(C(3))));
  const LinearForm form = ToLinear(u);
  EXPECT_EQ(form.lanes, 4);
  EXPECT_EQ(form.CoefficientOf(x), 16);
  EXPECT_EQ(form.CoefficientOf(lanes), 1);
  EXPECT_EQ(form.constant, 3);
  const UOp* back = FromLinear(g, form);
  EXPECT_EQ(back, Add(g, broadcast(Add(g, Mul(g, x, C(16)), C(3))), lanes));
}

TEST_F(LinearTest, NumbersBeyond64BitsStayOutside) {
  const UOp* x = R(8, 0);
  const UOp* inner = Mul(g, x, C(INT64_MAX));
  const LinearForm form = ToLinear(Mul(g, inner, C(4)));
  ASSERT_EQ(form.terms.size(), 1u);
  EXPECT_EQ(form.terms[0].first, inner);
  EXPECT_EQ(form.terms[0].second, 4);
  const UOp* sum = Add(g, C(INT64_MAX), C(1));
  EXPECT_EQ(ToLinear(sum).CoefficientOf(sum), 1);
}

// A sum that doubles itself 200 times has 2^200 paths.
TEST_F(LinearTest, SharedSumsTakeNoExponentialTime) {
  const UOp* u = R(8, 0);
  for (int i = 0; i < 200; ++i) u = Add(g, u, u);
  EXPECT_FALSE(ToLinear(u).terms.empty());
}

}  // namespace
}  // namespace quern
