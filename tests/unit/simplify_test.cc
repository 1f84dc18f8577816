#include "rewrite/simplify.h"

#include <gtest/gtest.h>

#include "rewrite/build.h"

namespace quern {
namespace {

class SimplifyTest : public testing::Test {
 protected:
  const UOp* C(int64_t v) { return IndexConst(g, v); }
  const UOp* R(int64_t size, int axis) { return Range(g, size, axis, AxisType::kLoop); }
  const UOp* Div(const UOp* a, int64_t c) { return Binary(g, Op::kFloorDiv, a, C(c)); }
  const UOp* Mod(const UOp* a, int64_t c) { return Binary(g, Op::kFloorMod, a, C(c)); }
  const UOp* Times(const UOp* a, int64_t c) { return Mul(g, a, C(c)); }
  const UOp* S(const UOp* u) { return Simplify(g, u); }
  UOpGraph g;
};

TEST_F(SimplifyTest, SplitRangesComeApart) {
  const UOp* x = R(16, 0);
  const UOp* y = R(4, 1);
  const UOp* sum = Add(g, Times(x, 4), y);
  EXPECT_EQ(S(Div(sum, 4)), x);
  EXPECT_EQ(S(Mod(sum, 4)), y);
  EXPECT_EQ(S(Div(sum, 8)), S(Div(x, 2)));
  EXPECT_EQ(S(Mod(sum, 8)), S(Add(g, Times(Mod(x, 2), 4), y)));
  EXPECT_EQ(S(Mod(sum, 64)), S(sum));
  EXPECT_EQ(S(Div(sum, 64)), C(0));
  EXPECT_EQ(S(Add(g, Times(Div(x, 3), 3), Mod(x, 3))), x);
  EXPECT_EQ(S(Add(g, Times(Div(x, 12), 3), Mod(Div(x, 4), 3))), S(Div(x, 4)));
}

TEST_F(SimplifyTest, GatesThatAreTrueVanish) {
  const UOp* x = R(16, 0);
  const UOp* p = Param(g, kF32Type, 0, 64);
  EXPECT_EQ(S(Index(g, p, x, Lt(g, x, C(16)))), Index(g, p, x));
  EXPECT_EQ(S(Load(g, Index(g, p, x, Lt(g, C(20), x)))), FloatConst(g, kF32Type, 0));
  const UOp* gated = Index(g, p, x, Lt(g, x, C(12)));
  EXPECT_EQ(S(gated), gated);
  std::pair<const UOp*, Bounds> narrow = {x, {0, 11}};
  SimplifyOptions options;
  options.assumed = {&narrow, 1};
  EXPECT_EQ(Simplify(g, gated, options), Index(g, p, x));
}

TEST_F(SimplifyTest, LoopsOfOneIterationVanish) {
  const UOp* x = R(1, 0);
  const UOp* k = R(1, 1);
  const UOp* p = Param(g, kF32Type, 0, 64);
  const UOp* q = Param(g, kF32Type, 1, 64);
  const UOp* load = Load(g, Index(g, q, Add(g, x, k)));
  const UOp* ranges[] = {k};
  const UOp* store = Store(g, Index(g, p, x), Reduce(g, Op::kAdd, load, ranges));
  const UOp* expected = Store(g, Index(g, p, C(0)), Load(g, Index(g, q, C(0))));
  EXPECT_EQ(S(Sink(g, {&store, 1})), Sink(g, {&expected, 1}));
}

}  // namespace
}  // namespace quern
