#include "rewrite/simplify.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "rewrite/build.h"
#include "rewrite/evaluate.h"
#include "rewrite/outside.h"
#include "rewrite/pseudo_code.h"

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
  EXPECT_EQ(S(Load(g, Index(g, p, x, Lt(g, C(20), x)))), Outside(g, kF32Type));
  const UOp* gated = Index(g, p, x, Lt(g, x, C(12)));
  EXPECT_EQ(S(gated), gated);
  std::pair<const UOp*, Bounds> narrow = {x, {0, 11}};
  SimplifyOptions options;
  options.assumed = {&narrow, 1};
  EXPECT_EQ(Simplify(g, gated, options), Index(g, p, x));
}

// What a false gate keeps from being read is more than a zero: nothing of its products is left.
TEST_F(SimplifyTest, WhatLiesOutsideTakesNoPart) {
  const UOp* p = Param(g, kF32Type, 0, 64);
  const UOp* k = Range(g, 4, 0, AxisType::kReduce);
  const UOp* value = Load(g, Index(g, p, k));
  const UOp* outside = Load(g, Index(g, p, k, BoolConst(g, false)));
  EXPECT_EQ(S(Mul(g, value, outside)), Outside(g, kF32Type));
  EXPECT_EQ(S(Mul(g, outside, value)), Outside(g, kF32Type));
  EXPECT_EQ(S(Add(g, value, Mul(g, outside, value))), value);
  EXPECT_EQ(S(Add(g, outside, value)), value);
  EXPECT_EQ(S(Cast(g, outside, kF64Type)), Outside(g, kF64Type));
  const UOp* ranges[] = {k};
  EXPECT_EQ(S(Reduce(g, Op::kAdd, Mul(g, value, outside), ranges)), Outside(g, kF32Type));
  const UOp* sum = Index(g, Register(g, kF32Type, 0, 4), C(1));
  const UOp* nothing = Store(g, sum, Add(g, Load(g, sum), Mul(g, value, outside)));
  EXPECT_EQ(S(nothing), g.Make(Op::kBlock, kVoidType, {}));
}

TEST_F(SimplifyTest, AZeroThatIsNotOutsideTakesPart) {
  const UOp* p = Param(g, kF32Type, 0, 64);
  const UOp* n = Param(g, kI32Type, 1, 64);
  const UOp* k = Range(g, 4, 0, AxisType::kReduce);
  const UOp* value = Load(g, Index(g, p, k));
  const UOp* zero = FloatConst(g, kF32Type, 0);
  EXPECT_EQ(S(Mul(g, value, zero))->op, Op::kMul);
  EXPECT_EQ(S(Add(g, value, zero))->op, Op::kAdd);
  const UOp* outside = Load(g, Index(g, p, k, BoolConst(g, false)));
  EXPECT_EQ(S(Binary(g, Op::kMax, value, outside))->op, Op::kMax);
  EXPECT_EQ(S(Load(g, Index(g, n, k, BoolConst(g, false)))), IntConst(g, kI32Type, 0));
  // A product of nothing is 1, so a product over what lies outside is not outside.
  const UOp* ranges[] = {k};
  EXPECT_EQ(S(Reduce(g, Op::kMul, outside, ranges))->op, Op::kReduce);
  // Memory that others see is written all the same.
  const UOp* place = Index(g, p, C(1));
  EXPECT_EQ(S(Store(g, place, Load(g, place)))->op, Op::kStore);
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

// Each line is one value in several spellings.
TEST_F(SimplifyTest, ManySpellingsHaveOneNormalForm) {
  const UOp* x = R(16, 0);
  const UOp* y = R(12, 1);
  const UOp* z = R(4, 2);
  auto eq = [&](const UOp* a, const UOp* b) {
    EXPECT_EQ(S(a), S(b)) << ExpressionText(S(a)) << "  and  " << ExpressionText(S(b));
  };
  eq(Add(g, x, Add(g, y, z)), Add(g, z, Add(g, y, x)));
  eq(Times(Add(g, x, C(3)), 4), Add(g, C(12), Add(g, Times(x, 2), Times(x, 2))));
  eq(Sub(g, x, y), Unary(g, Op::kNeg, Sub(g, y, x)));
  eq(Sub(g, Add(g, x, y), x), y);
  eq(Div(Add(g, Times(x, 12), y), 12), x);
  eq(Mod(Add(g, Times(x, 12), y), 12), y);
  eq(Div(Div(x, 2), 3), Div(x, 6));
  eq(Div(Mod(x, 8), 4), Mod(Div(x, 4), 2));
  eq(Mod(Mod(x, 8), 4), Mod(x, 4));
  eq(Add(g, Times(Div(x, 4), 4), Mod(x, 4)), x);
  eq(Add(g, Add(g, Times(Div(x, 4), 4), y), Mod(x, 4)), Add(g, x, y));
  eq(Sub(g, x, Times(Div(x, 4), 4)), Mod(x, 4));
  eq(Lt(g, x, y), Lt(g, Sub(g, x, y), C(0)));
  eq(Binary(g, Op::kLe, x, C(7)), Lt(g, x, C(8)));
  eq(Lt(g, Times(x, 4), C(30)), Lt(g, x, C(8)));
  eq(Lt(g, Add(g, Times(x, 4), z), C(32)), Lt(g, x, C(8)));
  eq(Lt(g, Div(x, 4), C(2)), Lt(g, x, C(8)));
  eq(Unary(g, Op::kNot, Lt(g, x, C(8))), Lt(g, C(7), x));
  eq(Where(g, Lt(g, x, y), y, x), Binary(g, Op::kMax, y, x));
  eq(Binary(g, Op::kTruncDiv, x, C(3)), Div(x, 3));
  eq(And(g, Lt(g, x, C(9)), Lt(g, x, C(5))), Lt(g, x, C(5)));
  eq(And(g, Lt(g, x, C(9)), And(g, Lt(g, y, C(5)), Lt(g, x, C(3)))),
     And(g, Lt(g, y, C(5)), Lt(g, x, C(3))));
}

// The tile of a split loop: the index of a view that reshapes and permutes comes back to a sum.
TEST_F(SimplifyTest, ReshapedViewsComeBack) {
  const UOp* i = R(6, 0);
  const UOp* j = R(10, 1);
  const UOp* k = R(14, 2);
  const UOp* flat = Add(g, Add(g, Times(i, 140), Times(j, 14)), k);
  const UOp* a = Div(flat, 140);
  const UOp* b = Mod(Div(flat, 14), 10);
  const UOp* c = Mod(flat, 14);
  EXPECT_EQ(S(a), i);
  EXPECT_EQ(S(b), j);
  EXPECT_EQ(S(c), k);
  EXPECT_EQ(S(Add(g, Add(g, Times(c, 60), Times(a, 10)), b)),
            S(Add(g, Add(g, Times(k, 60), Times(i, 10)), j)));
  const UOp* whole = R(840, 3);
  EXPECT_EQ(S(Add(g, Add(g, Times(Div(whole, 140), 140), Times(Mod(Div(whole, 14), 10), 14)),
                  Mod(whole, 14))),
            whole);
}

int64_t ValueAt(const UOp* u, std::span<const std::pair<const UOp*, int64_t>> at) {
  std::vector<Scalar> values(u->id + 1);
  bool overflow = false;
  for (const UOp* n : Toposort(u)) {
    if (n->IsConst()) values[n->id].i = n->IntValue();
    for (const auto& [node, value] : at) {
      if (node == n) values[n->id].i = value;
    }
    if (n->source_count == 0) continue;
    Scalar s[3];
    for (size_t i = 0; i < n->source_count; ++i) s[i] = values[n->src(i)->id];
    values[n->id] = Evaluate(n->op, n->src(0)->dtype.scalar, n->dtype.scalar, s, &overflow);
  }
  return values[u->id].i;
}

TEST_F(SimplifyTest, RemaindersOfSumsThatGoBelowZero) {
  const UOp* a = R(11, 0);
  const UOp* b = R(11, 1);
  const UOp* u = Mod(Add(g, Add(g, a, C(-29)), Times(b, 28)), 28);
  const UOp* simple = S(u);
  EXPECT_EQ(simple, S(Mod(Add(g, a, C(-1)), 28)));
  for (int64_t x = 0; x <= 10; ++x) {
    const std::pair<const UOp*, int64_t> at[] = {{a, x}, {b, 3}};
    EXPECT_EQ(ValueAt(simple, at), x == 0 ? 27 : x - 1);
  }
  const UOp* c = R(256, 2);
  const UOp* half = Div(Add(g, Times(c, -1), C(256)), 2);
  for (int64_t x = 0; x < 256; ++x) {
    const std::pair<const UOp*, int64_t> at[] = {{c, x}};
    EXPECT_EQ(ValueAt(S(half), at), (256 - x) / 2);
    EXPECT_EQ(ValueAt(half, at), (256 - x) / 2);
  }
}

TEST_F(SimplifyTest, ARemainderIsKeptIfOneValueNeedsIt) {
  const UOp* x = R(5, 0);
  EXPECT_EQ(S(Mod(x, 4)), Mod(x, 4));
  EXPECT_EQ(S(Mod(R(4, 0), 4)), R(4, 0));
}

TEST_F(SimplifyTest, NestedDivisionsEnd) {
  const UOp* x = R(1000, 0);
  EXPECT_EQ(S(Div(Add(g, Div(x, 15), C(1)), 4)), Div(Add(g, x, C(15)), 60));
  const UOp* deep = x;
  for (int i = 0; i < 20; ++i) deep = Div(Add(g, Div(deep, 3), C(i)), 2);
  const UOp* simple = S(deep);
  EXPECT_EQ(S(simple), simple);
}

TEST_F(SimplifyTest, RepeatedClausesCostNothing) {
  const UOp* p = Lt(g, R(64, 0), C(9));
  const UOp* q = Lt(g, C(2), R(64, 1));
  const UOp* chain = p;
  for (int i = 1; i < 96; ++i) chain = And(g, chain, i % 3 == 0 ? p : q);
  const UOp* tree = p;
  for (int i = 0; i < 60; ++i) tree = And(g, tree, i % 2 == 0 ? tree : q);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(S(chain), S(And(g, p, q)));
  EXPECT_EQ(S(tree), S(And(g, q, p)));
  std::vector<const UOp*> distinct;
  const UOp* wide = p;
  for (int i = 0; i < 96; ++i) wide = And(g, Lt(g, R(64, i), C(i % 50 + 5)), wide);
  S(wide);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(std::chrono::duration<double>(took).count(), 0.1);
}

TEST_F(SimplifyTest, LanesOfAStridedIndex) {
  const UOp* t = R(4, 0);
  const UOp* b = R(4, 1);
  const UOp* s = g.Make(Op::kLanes, kIndexType.WithLanes(32), {});
  auto wide = [&](const UOp* u) { return g.Make(Op::kBroadcast, u->dtype.WithLanes(32), {u}); };
  const UOp* sum = Add(g, wide(Add(g, Times(t, 50), Times(b, 8))), s);
  const UOp* u = Binary(g, Op::kFloorMod, sum, wide(C(20)));
  const UOp* lane = g.Make(Op::kExtract, kIndexType, {u}, {15, 0});
  std::pair<const UOp*, Bounds> assumed[] = {{t, {0, 0}}, {b, {1, 1}}};
  SimplifyOptions options;
  options.assumed = assumed;
  // (50·0 + 8·1 + 15) mod 20, lane by lane.
  EXPECT_EQ(Simplify(g, lane, options), C(3));
  EXPECT_NE(S(u), u);
  EXPECT_EQ(S(S(u)), S(u));
}

TEST_F(SimplifyTest, FloatsAreNotNumbers) {
  const UOp* p = Param(g, kF32Type, 0, 4);
  const UOp* x = Load(g, Index(g, p, R(4, 0)));
  auto f = [&](double v) { return FloatConst(g, kF32Type, v); };
  const UOp* kept[] = {
      Mul(g, x, f(0)),
      Add(g, x, f(0)),
      Sub(g, x, x),
      Binary(g, Op::kDiv, x, x),
      Where(g, Binary(g, Op::kNe, x, x), f(0), x),
      Mul(g, Cast(g, Lt(g, R(4, 0), C(2)), kF32Type), x),
      Binary(g, Op::kMax, x, f(0)),
      Unary(g, Op::kNot, Lt(g, x, f(1))),
      Add(g, Add(g, x, f(1)), f(2)),
      Binary(g, Op::kDiv, x, f(3)),
  };
  for (const UOp* u : kept) EXPECT_EQ(S(u), u) << ExpressionText(u);
  EXPECT_EQ(S(Add(g, x, f(-0.0))), x);
  EXPECT_EQ(S(Mul(g, x, f(1))), x);
  EXPECT_EQ(S(Binary(g, Op::kDiv, x, f(4))), Mul(g, x, f(0.25)));
  SimplifyOptions reassoc;
  reassoc.float_reassoc = true;
  EXPECT_EQ(Simplify(g, Mul(g, x, f(0)), reassoc), f(0));
  EXPECT_EQ(Simplify(g, Add(g, Add(g, x, f(1)), f(2)), reassoc), Add(g, x, f(3)));
  EXPECT_EQ(S(Binary(g, Op::kMax, f(NAN), f(1))), f(NAN));
  EXPECT_EQ(S(Binary(g, Op::kMax, f(1), f(NAN))), f(NAN));
  EXPECT_EQ(S(Mul(g, f(INFINITY), f(0))), f(NAN));
  EXPECT_EQ(S(Mul(g, f(-1), f(0))), f(-0.0));
}

TEST_F(SimplifyTest, CastsThatLoseNothingVanish) {
  const UOp* half = Load(g, Index(g, Param(g, kF16Type, 0, 4), R(4, 0)));
  EXPECT_EQ(S(Cast(g, Cast(g, half, kF32Type), kF16Type)), half);
  EXPECT_EQ(S(Cast(g, Cast(g, half, kF32Type), kF64Type)), Cast(g, half, kF64Type));
  const UOp* full = Load(g, Index(g, Param(g, kF32Type, 1, 4), R(4, 0)));
  const UOp* rounded = Cast(g, Cast(g, full, kF16Type), kF32Type);
  EXPECT_EQ(S(rounded), rounded);
  const UOp* word = Load(g, Index(g, Param(g, kI32Type, 2, 4), R(4, 0)));
  // A float clamps where an integer wraps.
  const UOp* clamped = Cast(g, Cast(g, word, kF64Type), kI8Type);
  EXPECT_EQ(S(clamped), clamped);
  EXPECT_EQ(S(Cast(g, Cast(g, word, kI64Type), kI8Type)), Cast(g, word, kI8Type));
  const UOp* x = R(100, 0);
  EXPECT_EQ(S(Cast(g, Cast(g, x, kI8Type), kIndexType)), x);
  const UOp* wide = Cast(g, Cast(g, R(200, 0), kI8Type), kIndexType);
  EXPECT_EQ(S(wide), wide);
}

TEST_F(SimplifyTest, StopsWhereItIsToldTo) {
  const UOp* u = Add(g, Times(R(8, 0), 1), Times(R(8, 1), 1));
  SimplifyOptions options;
  options.rewrite_limit = 0;
  EXPECT_EQ(Simplify(g, u, options), u);
  options.rewrite_limit = 1;
  const UOp* once = Simplify(g, u, options);
  EXPECT_NE(once, u);
  EXPECT_NE(once, S(u));
}

// A register tile of a product: 12×2 accumulators, 16 lanes, 8 steps of k.
TEST_F(SimplifyTest, ARegisterTileTakesLittleTime) {
  const UOp* i0 = R(85, 0);
  const UOp* j0 = R(32, 1);
  const UOp* k0 = R(128, 2);
  const UOp* a = Param(g, kF32Type, 0, 1 << 20);
  const UOp* b = Param(g, kF32Type, 1, 1 << 20);
  const UOp* lanes = g.Make(Op::kLanes, kIndexType.WithLanes(16), {});
  auto wide = [&](const UOp* u) { return g.Make(Op::kBroadcast, u->dtype.WithLanes(16), {u}); };
  std::vector<const UOp*> products;
  for (int k = 0; k < 8; ++k) {
    for (int i = 0; i < 12; ++i) {
      for (int j = 0; j < 2; ++j) {
        const UOp* row = Add(g, Times(i0, 12), C(i));
        const UOp* inner = Add(g, Times(k0, 8), C(k));
        const UOp* x = Load(g, Index(g, a, Add(g, Times(row, 1024), inner), Lt(g, row, C(1013))));
        const UOp* column = Times(Add(g, Times(j0, 2), C(j)), 16);
        const UOp* offset = Add(g, wide(Add(g, Times(inner, 1024), column)), lanes);
        products.push_back(
            Store(g, Index(g, b, offset), Mul(g, wide(x), Load(g, Index(g, b, offset)))));
      }
    }
  }
  const UOp* sink = Sink(g, products);
  double best = 1;
  for (int i = 0; i < 5; ++i) {
    UOpGraph fresh;
    const UOp* copy = fresh.Import(sink);
    const auto start = std::chrono::steady_clock::now();
    Simplify(fresh, copy);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  // About 0.4 ms in a release build; sanitizers are allowed much more.
  EXPECT_LT(best, 0.05);
}

}  // namespace
}  // namespace quern
