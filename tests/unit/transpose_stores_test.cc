#include "codegen/transpose_stores.h"

#include <gtest/gtest.h>

#include "codegen/access.h"
#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "optimizer/tolerance.h"
#include "rewrite/build.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// Stores to outputs in the lowered form: those with lanes side by side, and those apart.
struct Stores {
  int together = 0;
  int apart = 0;
};

// Lowers a kernel under these actions, compares it with the unscheduled one, and counts.
Stores StoresOf(const FormulaKernel& k, std::string_view actions) {
  const Target target = Avx512Target(1);
  Scheduler scheduler(*k.graph, k.sink, target);
  const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
  QUERN_CHECK(parsed.ok());
  const absl::Status applied = scheduler.ApplyAll(*parsed);
  QUERN_CHECK_MSG(applied.ok(), std::string(applied.message()).c_str());
  PassOptions options;
  options.verify = true;
  const absl::StatusOr<LoweredKernel> lowered =
      Lower(*k.graph, scheduler.kernel(), target, options);
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  EXPECT_TRUE(Interpret(k.sink, expected.Views()).ok());
  EXPECT_TRUE(Interpret(lowered->sink, actual.Views()).ok());
  EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << actions;
  Stores stores;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kStore || u->src(0)->src(0)->op != Op::kParam) continue;
    const Access access = ReadAccess(u->src(0));
    const bool together = access.kind == Access::Kind::kStrided && access.stride == 1;
    ++(together ? stores.together : stores.apart);
  }
  return stores;
}

constexpr const char* kLanesApart = "y[o,w] = sum[c](x[c,w]*f[o,c])";

// One store for each lane, whatever the number of rows: those of a power of two, others masked.
TEST(TransposeStoresTest, OneStoreForEachLane) {
  for (int rows : {4, 5, 7, 8, 14, 16}) {
    const FormulaKernel k = KernelOf(kLanesApart, Concat("o=32,c=3,w=", 2 * rows));
    const Stores stores = StoresOf(k, Concat("UPCAST(0,16) UPCAST(1,", rows, ")"));
    EXPECT_EQ(stores.together, 16) << rows;
    EXPECT_EQ(stores.apart, 0) << rows;
  }
}

// Two tiles of rows that do not touch are two blocks.
TEST(TransposeStoresTest, RowsOfSeveralTiles) {
  const FormulaKernel k = KernelOf("y[o,h,w] = sum[c](x[c,h,w]*f[o,c])", "o=16,c=3,h=4,w=8");
  const Stores stores = StoresOf(k, "UPCAST(0,16) UPCAST(1,4) UPCAST(0,2)");
  EXPECT_EQ(stores.together, 32);
  EXPECT_EQ(stores.apart, 0);
}

// The end of a padded loop: a gate for the whole tile, or none of it is left.
TEST(TransposeStoresTest, PaddedLoops) {
  const FormulaKernel k = KernelOf(kLanesApart, "o=32,c=3,w=13");
  const Stores stores = StoresOf(k, "UPCAST(0,16) PADTO(1,4) UPCAST(1,4)");
  EXPECT_GT(stores.together, 0);
}

// y[first + step · row + 100 · lane] = x[lane] for `rows` rows of 16 lanes, or y's own numbers.
const UOp* ScatteredTile(UOpGraph& g, int rows, int step, bool in_place) {
  const DType vector = kIndexType.WithLanes(16);
  const UOp* lanes = g.Make(Op::kLanes, vector, {});
  const auto all = [&](int64_t v) { return g.Make(Op::kBroadcast, vector, {IndexConst(g, v)}); };
  const UOp* x = Param(g, kF32Type, 0, 16);
  const UOp* y = Param(g, kF32Type, 1, 2000);
  std::vector<const UOp*> stores;
  for (int row = 0; row < rows; ++row) {
    const UOp* offset = Add(g, all(int64_t{step} * row), Mul(g, lanes, all(100)));
    const UOp* value = Load(g, in_place ? Index(g, y, offset) : Index(g, x, lanes));
    stores.push_back(Store(g, Index(g, y, offset), value));
  }
  const UOp* block = g.Make(Op::kBlock, kVoidType, stores);
  return Sink(g, {{g.Make(Op::kPhase, kVoidType, {block})}});
}

TEST(TransposeStoresTest, WhatIsNoTileOfItsOwnIsLeftAlone) {
  UOpGraph g;
  const auto changes = [&](const UOp* sink) { return TransposeStores(g, sink) != sink; };
  EXPECT_TRUE(changes(ScatteredTile(g, 4, 1, false)));
  EXPECT_FALSE(changes(ScatteredTile(g, 3, 1, false))) << "few rows";
  EXPECT_FALSE(changes(ScatteredTile(g, 4, 2, false))) << "rows with gaps";
  EXPECT_FALSE(changes(ScatteredTile(g, 4, 1, true))) << "the kernel reads what it stores";
}

}  // namespace
}  // namespace quern
