#include "rewrite/bounds.h"

#include <gtest/gtest.h>

#include "rewrite/build.h"

namespace quern {
namespace {

class BoundsTest : public testing::Test {
 protected:
  const UOp* C(int64_t v) { return IndexConst(g, v); }
  const UOp* R(int64_t size, int axis = 0) { return Range(g, size, axis, AxisType::kLoop); }
  Bounds Of(const UOp* u) { return bounds.Of(u); }
  Bounds Of(Op op, const UOp* a, const UOp* b) { return bounds.Of(Binary(g, op, a, b)); }
  UOpGraph g;
  BoundsAnalysis bounds;
};

TEST_F(BoundsTest, RemaindersFollowTheDivisor) {
  // Five values do not fit below four: the whole block.
  EXPECT_EQ(Of(Op::kFloorMod, R(5), C(4)), (Bounds{0, 3}));
  EXPECT_EQ(Of(Op::kFloorMod, R(3), C(4)), (Bounds{0, 2}));
  EXPECT_EQ(Of(Op::kFloorMod, Add(g, R(3), C(8)), C(4)), (Bounds{0, 2}));
  const UOp* below = Add(g, R(5), C(-7));  // −7 … −3
  EXPECT_EQ(Of(Op::kFloorMod, below, C(8)), (Bounds{1, 5}));
  EXPECT_EQ(Of(Op::kFloorMod, below, C(-2)), (Bounds{-1, 0}));
  EXPECT_EQ(Of(Op::kTruncMod, below, C(2)), (Bounds{-1, 0}));
  EXPECT_EQ(Of(Op::kTruncMod, below, C(100)), (Bounds{-7, 0}));
  EXPECT_EQ(Of(Op::kFloorMod, below, C(0)), (Bounds{-7, -3}));
}

TEST_F(BoundsTest, QuotientsRoundAsTheyShould) {
  const UOp* below = Add(g, R(5), C(-7));
  EXPECT_EQ(Of(Op::kFloorDiv, below, C(2)), (Bounds{-4, -2}));
  EXPECT_EQ(Of(Op::kTruncDiv, below, C(2)), (Bounds{-3, -1}));
  EXPECT_EQ(Of(Op::kFloorDiv, below, C(-2)), (Bounds{1, 3}));
  EXPECT_EQ(Of(Op::kFloorDiv, below, C(0)), (Bounds{0, 0}));
  // A divisor of any sign, zero included.
  EXPECT_EQ(Of(Op::kFloorDiv, R(11), Add(g, R(5, 1), C(-2))), (Bounds{-10, 10}));
}

TEST_F(BoundsTest, FixedWidthsWrap) {
  const UOp* x = Load(g, Index(g, Param(g, kI8Type, 0, 1), C(0)));
  EXPECT_EQ(Of(x), (Bounds{-128, 127}));
  EXPECT_EQ(Of(Op::kAdd, x, IntConst(g, kI8Type, 1)), (Bounds{-128, 127}));
  const UOp* small = Binary(g, Op::kAnd, x, IntConst(g, kI8Type, 15));
  EXPECT_EQ(Of(small), (Bounds{0, 15}));
  EXPECT_EQ(Of(Op::kMul, small, IntConst(g, kI8Type, 8)), (Bounds{0, 120}));
  EXPECT_EQ(Of(Op::kMul, small, IntConst(g, kI8Type, 9)), (Bounds{-128, 127}));
  EXPECT_EQ(Of(Unary(g, Op::kNeg, x)), (Bounds{-128, 127}));  // −(−128) is −128.
}

TEST_F(BoundsTest, NothingIsConcludedFromTheEndOfU64) {
  const DType u64(ScalarType::kU64);
  const UOp* x = Load(g, Index(g, Param(g, u64, 0, 1), C(0)));
  const UOp* huge = IntConst(g, u64, -1);
  EXPECT_EQ(Of(Op::kLt, x, huge), (Bounds{0, 1}));
  EXPECT_EQ(Of(Op::kLe, x, huge), (Bounds{0, 1}));
  EXPECT_FALSE(Of(huge).IsSingle());
  EXPECT_EQ(Of(Op::kSub, x, IntConst(g, u64, 5)), TypeBounds(ScalarType::kU64));
}

TEST_F(BoundsTest, IndexSaturates) {
  const UOp* big = Mul(g, R(INT64_MAX), C(4));
  EXPECT_EQ(Of(big), (Bounds{0, INT64_MAX}));
  EXPECT_EQ(Of(Op::kMul, big, C(-1)).max, 0);
}

TEST_F(BoundsTest, LanesAndChoices) {
  const UOp* lanes = g.Make(Op::kLanes, kIndexType.WithLanes(16), {});
  EXPECT_EQ(Of(lanes), (Bounds{0, 15}));
  const UOp* either = Where(g, Lt(g, R(8), C(3)), C(-2), R(5, 1));
  EXPECT_EQ(Of(either), (Bounds{-2, 4}));
  EXPECT_EQ(Of(Where(g, Lt(g, R(8), C(8)), C(-2), R(5, 1))), (Bounds{-2, -2}));
}

TEST_F(BoundsTest, AssumptionsNarrowWhatFollowsFromThem) {
  const UOp* x = R(100);
  const UOp* sum = Add(g, x, C(1));
  EXPECT_EQ(Of(sum), (Bounds{1, 100}));
  bounds.Assume(x, {8, 15});
  EXPECT_EQ(Of(sum), (Bounds{9, 16}));
  EXPECT_EQ(Of(Op::kFloorDiv, x, C(8)), (Bounds{1, 1}));
}

}  // namespace
}  // namespace quern
