#include "codegen/prefetch_rows.h"

#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

constexpr const char* kSoftmax =
    "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])";

// How far ahead each marked load fetches, in elements, under `actions`, or if there are none as the
// heuristic schedules the kernel.
std::vector<int64_t> Distances(const char* formula, const char* sizes, const char* actions = "") {
  FormulaKernel k = KernelOf(formula, sizes);
  Target target = Avx512Target(1);
  target.llvm_cpu = "znver5";  // where rows go in pairs
  Scheduler s(*k.graph, k.sink, target);
  if (*actions == '\0') {
    ApplyHeuristic(s);
  } else {
    EXPECT_EQ(s.ApplyAll(*ParseActions(actions)), absl::OkStatus());
  }
  PassOptions options;
  options.verify = true;
  std::vector<int64_t> distances;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    if (pass.name != "prefetch-rows" || before == after) return;
    for (const UOp* u : Toposort(after)) {
      if (u->op == Op::kLoad && u->arg.a != 0) distances.push_back(u->arg.a);
    }
  };
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return distances;
}

using List = std::vector<int64_t>;

TEST(PrefetchRowsTest, TheSecondLoopOverARowFetchesTheNextRow) {
  EXPECT_EQ(Distances(kSoftmax, "i=4095,j=1024,k=1024", "UNROLL(0,64) UNROLL(1,64) UPCAST(1,64)"),
            List{1024});
  EXPECT_EQ(Distances("Y[i,j] = X[i,j]/sqrt(sum[k](X[i,k]*X[i,k]))", "i=4095,j=512,k=512",
                      "UNROLL(0,64) UPCAST(1,64)"),
            List{512});
}

// Rows that go in pairs fetch those of the next pair.
TEST(PrefetchRowsTest, PairsOfRowsFetchTheNextTwo) {
  EXPECT_EQ(Distances(kSoftmax, "i=4096,j=1024,k=1024"), (List{2048, 2048}));
  EXPECT_EQ(Distances(kSoftmax, "i=4095,j=1024,k=1024"), (List{2048, 2048}));  // padded to pairs
}

TEST(PrefetchRowsTest, WhatIsReadOnceIsNotFetched) {
  EXPECT_EQ(Distances("s[i] = sum[j](X[i,j])", "i=4096,j=1024"), List{});
  EXPECT_EQ(Distances("Y[i,j] = exp(X[i,j])*g[j]", "i=4096,j=1024"), List{});
}

TEST(PrefetchRowsTest, WhatStaysInACacheIsNotFetched) {
  EXPECT_EQ(Distances(kSoftmax, "i=64,j=1024,k=1024"), List{});
}

TEST(PrefetchRowsTest, ShortAndLongRowsAreNotFetched) {
  EXPECT_EQ(Distances(kSoftmax, "i=16383,j=128,k=128"), List{});
  EXPECT_EQ(Distances(kSoftmax, "i=256,j=16384,k=16384"), List{});
}

// The pieces of a loop that was cut read the same rows, but not the same elements of them.
TEST(PrefetchRowsTest, PiecesOfALoopAreNoRepetition) {
  EXPECT_EQ(Distances("Y[i,j] = pad(X[i,j-1])+X[i,j]+pad(X[i,j+1])", "i=4096,j=1024"), List{});
}

}  // namespace
}  // namespace quern
