#include "codegen/prefetch_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codegen/lower.h"
#include "codegen/lowered_kernel.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/simplify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// A second-level cache so small that a little test overflows it.
Target SmallCaches() {
  Target target = Avx512Target(1);
  target.l1_bytes = 2 << 10;
  target.l2_bytes = 32 << 10;
  return target;
}

// What the marked loads fetch while the loop over panels, axis 0, is in iteration 1.
struct Fetched {
  std::set<int64_t> lines;  // their numbers within the buffer
  int64_t fetches = 0;
  std::set<int64_t> slots;
};

void Enumerate(UOpGraph& g, const UOp* ahead, std::vector<const UOp*> ranges, Fetched& fetched) {
  if (ranges.empty()) {
    const UOp* place = Simplify(g, ahead);
    QUERN_CHECK(place->op == Op::kConst);
    fetched.lines.insert(place->arg.a / 16);
    ++fetched.fetches;
    return;
  }
  const UOp* r = ranges.back();
  ranges.pop_back();
  const bool panels = r->range_axis() == 0;
  for (int64_t i = panels ? 1 : 0; i < (panels ? 2 : r->range_size()); ++i) {
    Enumerate(g, Substitute(g, ahead, {{r}}, {{IndexConst(g, i)}}), ranges, fetched);
  }
}

Fetched FetchedBy(std::string_view formula, std::string_view sizes, std::string_view constant,
                  std::string_view actions, const Target& target = SmallCaches()) {
  NotationOptions options;
  QUERN_CHECK(ParseSizes(sizes, options).ok());
  if (!constant.empty()) options.constants = {std::string(constant)};
  const absl::StatusOr<Program> program = ParseNotation(formula, options);
  QUERN_CHECK(program.ok());
  UOpGraph& g = *program->graph;
  Scheduler s(g, program->kernels.at(0).sink, target);
  QUERN_CHECK(s.ApplyAll(*ParseActions(actions)).ok());
  PassOptions passes;
  passes.verify = true;
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, s.kernel(), target, passes);
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  Fetched fetched;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kLoad || u->source_count != 2) continue;
    std::vector<const UOp*> ranges;
    for (const UOp* r : Toposort(u->src(1))) {
      if (r->op == Op::kRange) ranges.push_back(r);
    }
    fetched.slots.insert(u->src(0)->src(0)->slot());
    Enumerate(g, u->src(1), ranges, fetched);
  }
  return fetched;
}

std::set<int64_t> Lines(int64_t first, int64_t count) {
  std::set<int64_t> lines;
  for (int64_t i = 0; i < count; ++i) lines.insert(first + i);
  return lines;
}

constexpr const char* kMatmul = "C[j,i] = sum[k](A[i,k]*B[k,j])";

// Panels of 16 columns of 64 rows: 64 lines each. Four tiles of rows read each of them in 64 steps.
TEST(PrefetchPanelsTest, EachStepFetchesItsPartOfTheNextPackedPanel) {
  const Fetched fetched =
      FetchedBy(kMatmul, "i=16,j=256,k=64", "B", "UPCAST(0,16) UPCAST(1,4) LOCAL(1,0)");
  EXPECT_EQ(fetched.lines, Lines(2 * 64, 64));
  EXPECT_EQ(fetched.fetches, 4 * 64);
  EXPECT_THAT(fetched.slots, SizeIs(1));
  EXPECT_GE(*fetched.slots.begin(), kFirstPackedSlot);
}

// With two passes of 16 steps, a step fetches two lines.
TEST(PrefetchPanelsTest, FewStepsFetchSeveralLines) {
  const Fetched fetched =
      FetchedBy(kMatmul, "i=8,j=256,k=64", "B", "UPCAST(0,16) UPCAST(1,4) UNROLL(0,4) LOCAL(1,0)");
  EXPECT_EQ(fetched.lines, Lines(2 * 64, 64));
  EXPECT_EQ(fetched.fetches, 64);
}

// Rows of 1024 elements, 32 of each in a panel: two lines of each of 64 rows, in iteration 1 those
// from element 64 on.
TEST(PrefetchPanelsTest, LanesReadInPlaceFetchWhatLiesBesideThem) {
  for (const char* tile : {"UPCAST(0,32) UPCAST(1,4)", "UPCAST(0,32) UPCAST(1,4) UNROLL(0,2)",
                           "UPCAST(0,32) UPCAST(1,8) UNROLL(0,4)"}) {
    const Fetched fetched = FetchedBy(kMatmul, "i=16,j=1024,k=64", "", tile);
    for (int64_t row = 0; row < 64; ++row) {
      for (int64_t line = 0; line < 2; ++line) {
        EXPECT_TRUE(fetched.lines.contains((row * 1024 + 64) / 16 + line)) << tile << " " << row;
      }
    }
    EXPECT_EQ(fetched.slots, std::set<int64_t>{1}) << tile;
  }
}

TEST(PrefetchPanelsTest, WhatStaysInACacheIsNotFetched) {
  Target target = SmallCaches();
  target.l2_bytes = 1 << 20;
  EXPECT_THAT(
      FetchedBy(kMatmul, "i=16,j=256,k=64", "B", "UPCAST(0,16) UPCAST(1,4) LOCAL(1,0)", target)
          .lines,
      IsEmpty());
}

TEST(PrefetchPanelsTest, WhatIsReadOnceIsNotFetched) {
  EXPECT_THAT(FetchedBy(kMatmul, "i=4,j=256,k=64", "B", "UPCAST(0,16) UPCAST(1,4)").lines,
              IsEmpty());
}

TEST(PrefetchPanelsTest, PanelsOfWhichNoTwoStayInTheCacheAreNotFetched) {
  EXPECT_THAT(
      FetchedBy(kMatmul, "i=16,j=256,k=512", "B", "UPCAST(0,16) UPCAST(1,4) LOCAL(1,0)").lines,
      IsEmpty());
}

// Panels of 24 elements are no whole lines.
TEST(PrefetchPanelsTest, PartsOfLinesAreNotFetched) {
  EXPECT_THAT(FetchedBy(kMatmul, "i=16,j=1032,k=64", "", "UPCAST(0,24) UPCAST(1,4)").lines,
              IsEmpty());
}

// Tiles of 4 rows of 512 elements, 32 lines each; A lies in rows, 1024 lines in all.
TEST(PrefetchPanelsTest, TheRowsOfTheNextTileAreFetchedAtTheirBeginnings) {
  const Fetched fetched = FetchedBy("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=32,j=16,k=512", "",
                                    "UPCAST(1,16) UPCAST(0,4)");
  std::set<int64_t> lines;
  for (int64_t row = 8; row < 12; ++row) lines.merge(Lines(row * 32, 4));
  EXPECT_EQ(fetched.lines, lines);
  EXPECT_EQ(fetched.slots, std::set<int64_t>{0});
}

TEST(PrefetchPanelsTest, ShortRowsAreNotFetched) {
  EXPECT_THAT(FetchedBy("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=256,j=16,k=128", "",
                        "UPCAST(1,16) UPCAST(0,4)")
                  .lines,
              IsEmpty());
}

}  // namespace
}  // namespace quern
