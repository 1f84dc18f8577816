#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

// The steps of the heuristic that order, cut and repeat the sums of products.

namespace quern {
namespace {

// The loops of the schedule, outermost first.
std::vector<Axis> LoopsOf(const FormulaKernel& k, const Target& target) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  std::vector<Axis> loops = scheduler.axes();
  std::erase_if(loops, [](const Axis& a) { return IsRegisterAxis(a.type); });
  return loops;
}

std::vector<int64_t> LoopSizes(const FormulaKernel& k, const Target& target) {
  std::vector<int64_t> sizes;
  for (const Axis& a : LoopsOf(k, target)) sizes.push_back(a.size);
  return sizes;
}

// 128 channels, a window of 3 by 3: what masks follow stands outside.
TEST(HeuristicSumsTest, ChannelsAreSummedInsideTheWindow) {
  const std::vector<int64_t> sizes =
      LoopSizes(KernelOf("Y[h,w,o] = sum[c,p,q](pad(X[h+p-1,w+q-1,c])*W[p,q,c,o])",
                         "h=14,w=14,o=128,c=128,p=3,q=3", "", "X=14,14,128"),
                Avx512Target(1));
  ASSERT_GE(sizes.size(), 3);
  EXPECT_EQ(std::vector<int64_t>(sizes.end() - 3, sizes.end()), (std::vector<int64_t>{3, 3, 128}));
}

TEST(HeuristicSumsTest, AFewChannelsAreSummedOutsideTheWindow) {
  const std::vector<int64_t> sizes =
      LoopSizes(KernelOf("Y[h,w,o] = sum[c,p,q](pad(X[h+p-3,w+q-3,c])*W[p,q,c,o])",
                         "h=28,w=28,o=128,c=3,p=7,q=7", "", "X=28,28,3"),
                Avx512Target(1));
  ASSERT_GE(sizes.size(), 3);
  EXPECT_EQ(std::vector<int64_t>(sizes.end() - 3, sizes.end()), (std::vector<int64_t>{3, 7, 7}));
}

// A panel of 64 columns of 8192 rows is 2 MiB.
TEST(HeuristicSumsTest, SumsWhosePanelsNoCacheHoldsAreCutIntoBlocks) {
  Target target = Avx512Target(1);
  target.l2_bytes = 1 << 20;
  const std::vector<Axis> loops = LoopsOf(MatmulKernel(2048, 2048, 8192), target);
  EXPECT_EQ(loops[0].type, AxisType::kGroupTop);
  EXPECT_EQ(loops[0].size, 8);
  for (const Axis& a : LoopsOf(MatmulKernel(2048, 2048, 1024), target)) {
    EXPECT_NE(a.type, AxisType::kGroupTop);
  }
}

// With a tail, a buffer holds the sums of one row of panels only.
TEST(HeuristicSumsTest, BlocksOfSumsWithATailStandInsideThePanels) {
  Target target = Avx512Target(1);
  target.l2_bytes = 1 << 20;
  const FormulaKernel k =
      KernelOf("C[i,j] = max(sum[k](A[i,k]*B[k,j]), 0)", "i=2048,j=2048,k=8192");
  const std::vector<Axis> loops = LoopsOf(k, target);
  EXPECT_EQ(loops[0].type, AxisType::kLoop);
  EXPECT_EQ(loops[1].type, AxisType::kGroupTop);
}

// 16 images of 7 by 7 with 512 channels: weights are 9 MiB, pixels a tenth of that for each image.
TEST(HeuristicSumsTest, LargePackedOperandsAreReadOnce) {
  NotationOptions options;
  ASSERT_TRUE(ParseSizes("n=16,h=7,w=7,o=512,c=512,p=3,q=3", options).ok());
  ASSERT_TRUE(ParseShape("X=16,7,7,512", options).ok());
  options.constants = {"W"};
  const absl::StatusOr<Program> program =
      ParseNotation("Y[n,h,w,o] = sum[c,p,q](pad(X[n,h+p-1,w+q-1,c])*W[p,q,c,o])", options);
  ASSERT_TRUE(program.ok());
  Target target = Avx512Target(1);
  target.l2_bytes = 1 << 20;
  const FormulaKernel k = {program->graph, program->kernels[0].sink};
  const std::vector<int64_t> sizes = LoopSizes(k, target);
  ASSERT_GE(sizes.size(), 2);
  EXPECT_EQ(sizes[0], 512 / 32);  // Panels of 32 channels, then images.
}

}  // namespace
}  // namespace quern
