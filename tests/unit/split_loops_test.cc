#include "codegen/split_loops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "rewrite/kernel_flags.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// The sum has 128 steps of four, padded to 132 and cut into two blocks: the loop over blocks
// becomes pieces of one iteration each, and the last four steps of the second block add nothing.
constexpr const char* kProduct = "C[i,j] = sum[k](A[i,k]*B[k,j])";
constexpr const char* kPaddedBlocks =
    "UPCAST(1,32) UPCAST(0,8) UNROLL(0,4) LOCAL(0,0) PADTO(2,6) GROUPTOP(0,2)";

void LowerProduct(const char* actions, const PassOptions& options) {
  FormulaKernel k = KernelOf(kProduct, "i=64,j=1024,k=512");
  const Target target = Avx512Target(1);
  Scheduler s(*k.graph, MarkConstantSlot(*k.graph, k.sink, /*B*/ 1), target);
  ASSERT_EQ(s.ApplyAll(*ParseActions(actions)), absl::OkStatus());
  const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
}

TEST(SplitLoopsTest, PiecesOfOneIterationLeaveNoBlockAndNoLoopIsEmpty) {
  PassOptions options;
  int split = 0;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    if (pass.name != "split-loops" || before == after) return;
    for (const UOp* u : Toposort(after)) {
      if (u->op != Op::kLoop && u->op != Op::kPhase) continue;
      const std::span<const UOp* const> sources = u->src();
      const auto is = [&](Op op) {
        return std::count_if(sources.begin(), sources.end(),
                             [&](const UOp* s) { return s->op == op; });
      };
      EXPECT_EQ(is(Op::kBlock), 0);
      if (u->op == Op::kLoop) EXPECT_GT(is(Op::kLoop) + is(Op::kStore), 0);
      split += is(Op::kLoop) > 1 ? 1 : 0;
    }
  };
  LowerProduct(kPaddedBlocks, options);
  EXPECT_EQ(split, 2);  // that packs, and that computes
}

// The panels of B, packed once, exceed the caches and are fetched ahead, by the loops that read
// them.
TEST(SplitLoopsTest, LaterPassesFindTheLoopsOfPieces) {
  PassOptions options;
  options.verify = true;
  LowerProduct(kPaddedBlocks, options);
}

}  // namespace
}  // namespace quern
