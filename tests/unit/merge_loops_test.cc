#include "rewrite/merge_loops.h"

#include <gtest/gtest.h>

#include <vector>

#include "rewrite/range_sets.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

// Sizes of the loops that are left, outermost first.
std::vector<int64_t> MergedSizes(const FormulaKernel& k) {
  const UOp* merged = MergeLoops(*k.graph, k.sink);
  EXPECT_TRUE(VerifyKernel(merged).ok()) << VerifyKernel(merged);
  EXPECT_EQ(MergeLoops(*k.graph, merged), merged);
  std::vector<int64_t> sizes;
  const RangeSets sets(merged);
  for (const UOp* r : sets.ranges()) sizes.push_back(r->range_size());
  return sizes;
}

using Sizes = std::vector<int64_t>;

TEST(MergeLoopsTest, ElementwiseLoopsBecomeOne) {
  EXPECT_EQ(MergedSizes(KernelOf("y[i,j,k] = a[i,j,k]*b[i,j,k]", "i=2,j=3,k=5")), Sizes{30});
}

TEST(MergeLoopsTest, PixelsOfAPointwiseConvolution) {
  const FormulaKernel k = KernelOf("y[n,o,h,w] = sum[c](x[n,c,h,w]*f[o,c])", "n=1,o=4,c=3,h=7,w=7");
  EXPECT_EQ(MergedSizes(k), (Sizes{4, 49, 3}));
}

TEST(MergeLoopsTest, TermsOfAReduction) {
  EXPECT_EQ(MergedSizes(KernelOf("y[c] = sum[h,w](x[c,h,w])", "c=4,h=7,w=5")), (Sizes{4, 35}));
  EXPECT_EQ(MergedSizes(KernelOf("y[] = max[h,w](x[h,w])", "h=7,w=5")), Sizes{35});
}

// A loop over outputs is no neighbour of one over terms, however the memory lies.
TEST(MergeLoopsTest, RowsOfARowSumStay) {
  EXPECT_EQ(MergedSizes(KernelOf("y[i] = sum[j](x[i,j])", "i=4,j=8")), (Sizes{4, 8}));
}

TEST(MergeLoopsTest, AnOperandThatUsesOneLoopOnlyKeepsThemApart) {
  EXPECT_EQ(MergedSizes(KernelOf("y[i,j] = x[i,j]+b[j]", "i=4,j=8")), (Sizes{4, 8}));
  EXPECT_EQ(MergedSizes(KernelOf("y[i,j] = x[j,i]", "i=4,j=8")), (Sizes{4, 8}));
  EXPECT_EQ(MergedSizes(KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=4,j=8,k=2")),
            (Sizes{4, 8, 2}));
}

TEST(MergeLoopsTest, GapsInMemoryKeepLoopsApart) {
  NotationOptions options;
  ASSERT_TRUE(ParseSizes("i=4,j=8", options).ok());
  ASSERT_TRUE(ParseShape("x=4,9", options).ok());
  absl::StatusOr<Program> program = ParseNotation("y[i,j] = x[i,j]*2", options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(MergedSizes({program->graph, program->kernels[0].sink}), (Sizes{4, 8}));
}

// The value of a loop variable itself, and gates, need both.
TEST(MergeLoopsTest, LoopsThatAreCheckedStayApart) {
  EXPECT_EQ(MergedSizes(KernelOf("y[i,j] = where(j < 3, x[i,j], 0.0)", "i=4,j=8")), (Sizes{4, 8}));
  EXPECT_EQ(MergedSizes(KernelOf("y[i,j] = x[i,j]*f32(i)", "i=4,j=8")), (Sizes{4, 8}));
}

TEST(MergeLoopsTest, LoopsThatRunOnceVanish) {
  EXPECT_EQ(MergedSizes(KernelOf("y[n,i,j] = where(n < j, x[n,j,i], 0.0)", "n=1,i=4,j=8")),
            (Sizes{4, 8}));
  EXPECT_EQ(MergedSizes(KernelOf("y[n,i] = x[n,i]*2", "n=1,i=1")), Sizes{});
}

TEST(MergeLoopsTest, TwoOfThree) {
  EXPECT_EQ(MergedSizes(KernelOf("y[b,i,j] = x[b,i,j]+s[b]", "b=2,i=4,j=8")), (Sizes{2, 32}));
  EXPECT_EQ(MergedSizes(KernelOf("y[b,i,j] = x[b,i,j]+s[j]", "b=2,i=4,j=8")), (Sizes{8, 8}));
}

}  // namespace
}  // namespace quern
