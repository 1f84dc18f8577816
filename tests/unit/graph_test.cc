#include "rewrite/graph.h"

#include <gtest/gtest.h>

#include "rewrite/build.h"

namespace quern {
namespace {

TEST(GraphTest, EqualContentIsOneNode) {
  UOpGraph g;
  const UOp* a = Add(g, IndexConst(g, 1), Range(g, 4, 0, AxisType::kLoop));
  const UOp* b = Add(g, IndexConst(g, 1), Range(g, 4, 0, AxisType::kLoop));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, Add(g, Range(g, 4, 0, AxisType::kLoop), IndexConst(g, 1)));
  EXPECT_NE(Range(g, 4, 0, AxisType::kLoop), Range(g, 4, 1, AxisType::kLoop));
}

TEST(GraphTest, HashesAreTheSameInAnotherGraph) {
  UOpGraph g;
  UOpGraph h;
  IndexConst(h, 99);  // Other ids.
  EXPECT_EQ(Add(g, IndexConst(g, 1), IndexConst(g, 2))->hash,
            Add(h, IndexConst(h, 1), IndexConst(h, 2))->hash);
}

// A stored tuning database lives by this: the hash of known content must never change.
TEST(GraphTest, HashIsStableBetweenVersions) {
  UOpGraph g;
  const UOp* u = Add(g, FloatConst(g, kF32Type, 1.5), FloatConst(g, kF32Type, 2));
  const UOp* again = Add(g, FloatConst(g, kF32Type, 1.5), FloatConst(g, kF32Type, 2));
  EXPECT_EQ(u->hash, again->hash);
  EXPECT_NE(u->hash, Add(g, FloatConst(g, kF32Type, 2), FloatConst(g, kF32Type, 1.5))->hash);
}

TEST(GraphTest, OverlayFindsNodesOfItsBase) {
  UOpGraph base;
  const UOp* one = IndexConst(base, 1);
  const UOp* sum = Add(base, one, one);
  base.Freeze();
  UOpGraph overlay(&base);
  EXPECT_EQ(Add(overlay, IndexConst(overlay, 1), one), sum);
  const UOp* fresh = Add(overlay, sum, one);
  EXPECT_GE(fresh->id, base.size());
  EXPECT_EQ(overlay.size(), base.size() + 1);
  UOpGraph next;
  EXPECT_EQ(next.Import(fresh)->hash, fresh->hash);
}

TEST(GraphTest, ManyNodesSurviveGrowth) {
  UOpGraph g;
  std::vector<const UOp*> made;
  for (int i = 0; i < 20000; ++i) made.push_back(IndexConst(g, i));
  for (int i = 0; i < 20000; ++i) EXPECT_EQ(made[i], IndexConst(g, i));
  EXPECT_EQ(g.size(), 20000u);
}

TEST(GraphTest, DeepChainsNeedNoStack) {
  UOpGraph g;
  const UOp* r = Range(g, 4, 0, AxisType::kLoop);
  const UOp* u = r;
  for (int i = 0; i < 200000; ++i) u = Add(g, u, IndexConst(g, i % 7));
  EXPECT_GT(Toposort(u).size(), 200000u);
  const UOp* zero = IndexConst(g, 0);
  EXPECT_NE(Substitute(g, u, std::vector<const UOp*>{r}, std::vector<const UOp*>{zero}), u);
}

TEST(GraphTest, SubstituteReplacesEveryUse) {
  UOpGraph g;
  const UOp* r = Range(g, 4, 0, AxisType::kLoop);
  const UOp* u = Mul(g, Add(g, r, IndexConst(g, 1)), r);
  const UOp* c = IndexConst(g, 3);
  EXPECT_EQ(Substitute(g, u, std::vector<const UOp*>{r}, std::vector<const UOp*>{c}),
            Mul(g, Add(g, c, IndexConst(g, 1)), c));
}

}  // namespace
}  // namespace quern
