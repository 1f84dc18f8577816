#include "codegen/prefetch_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

// How far ahead what is added to is fetched, in elements, for C of 64 by 64 (16 KiB).
std::vector<int64_t> Distances(std::string_view actions, int64_t cache_bytes) {
  const FormulaKernel k = MatmulKernel(64, 64, 64);
  Target target = Avx512Target(1);
  target.l2_bytes = cache_bytes;
  Scheduler s(*k.graph, k.sink, target);
  QUERN_CHECK(s.ApplyAll(*ParseActions(actions)).ok());
  std::vector<int64_t> distances;
  PassOptions passes;
  passes.verify = true;
  const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, passes);
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  for (const UOp* u : Toposort(lowered->sink)) {
    const bool output =
        u->op == Op::kLoad && u->src(0)->src(0)->op == Op::kParam && u->src(0)->src(0)->slot() == 2;
    if (output && u->arg.a != 0) distances.push_back(u->arg.a);
  }
  return distances;
}

// Tiles of 4 by 16; the sum in blocks, around the tiles.
constexpr const char* kRowsInside =
    "UPCAST(1,16) UPCAST(0,4) LOCAL(0,0) GROUPTOP(0,4) SWAP(1,2) SWAP(0,1)";
constexpr const char* kColumnsInside = "UPCAST(1,16) UPCAST(0,4) GROUPTOP(0,4) SWAP(1,2) SWAP(0,1)";

TEST(PrefetchSumsTest, TheNextTileIsFetched) {
  EXPECT_THAT(Distances(kRowsInside, 4096), Not(IsEmpty()));
  EXPECT_THAT(Distances(kRowsInside, 4096), Each(4 * 64));
  EXPECT_THAT(Distances(kColumnsInside, 4096), Not(IsEmpty()));
  EXPECT_THAT(Distances(kColumnsInside, 4096), Each(16));
}

TEST(PrefetchSumsTest, WhatStaysInTheCacheIsNotFetched) {
  EXPECT_THAT(Distances(kRowsInside, 16 << 10), IsEmpty());
}

TEST(PrefetchSumsTest, SumsInOnePieceReadNothing) {
  EXPECT_THAT(Distances("UPCAST(1,16) UPCAST(0,4) LOCAL(0,0)", 4096), IsEmpty());
}

}  // namespace
}  // namespace quern
