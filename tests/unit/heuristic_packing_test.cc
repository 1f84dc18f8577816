// Which operands of a product the heuristic packs, and by how many rows of tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kProduct = "C[i,j] = sum[k](A[i,k]*B[k,j])";
constexpr const char* kTransposed = "C[i,j] = sum[k](A[k,i]*B[k,j])";

// `cpu` is LLVM's name.
std::string Choose(const char* formula, const char* sizes, const char* cpu, int cores = 1,
                   const char* shape = "") {
  FormulaKernel k = KernelOf(formula, sizes, "", shape);
  Target target = Avx2Target(cores);
  target.llvm_cpu = cpu;
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s);
  EXPECT_TRUE(VerifyKernel(s.kernel()).ok()) << VerifyKernel(s.kernel());
  return ActionsToString(s.actions());
}

// Rows beyond the second-level cache are packed by blocks where a core is known to gain by it.
TEST(HeuristicPackingTest, FarRowsArePackedOnSomeCores) {
  EXPECT_THAT(Choose(kProduct, "i=1020,j=1024,k=1024", "znver3"),
              HasSubstr("LOCAL(1,0) LOCAL(0,17)"));
  EXPECT_THAT(Choose(kProduct, "i=1020,j=1024,k=1024", "x86-64-v3"), HasSubstr("LOCAL(0,0)"));
  // Near ones, and those that few columns read, are not.
  EXPECT_THAT(Choose(kProduct, "i=252,j=256,k=256", "znver3"), Not(HasSubstr("LOCAL(1,0)")));
  EXPECT_THAT(Choose(kProduct, "i=4080,j=128,k=4096", "znver3"), Not(HasSubstr("LOCAL(1,0)")));
  // Windows share what they read: packed, it would be several times as much.
  EXPECT_THAT(Choose("Y[w,o] = sum[c,q](X[w+q,c]*W[q,c,o])", "w=600,o=512,c=512,q=5", "znver3", 1,
                     "X=604,512"),
              Not(HasSubstr("LOCAL(1,0)")));
}

// 683 tiles of six rows have no divisor, 86 only two: a few more have one.
TEST(HeuristicPackingTest, TilesArePaddedToWholeBlocks) {
  EXPECT_THAT(Choose(kProduct, "i=4096,j=4096,k=512", "znver3"),
              HasSubstr("PADTO(0,19) LOCAL(1,0) LOCAL(0,19)"));
  EXPECT_THAT(Choose(kTransposed, "i=512,j=512,k=512", "x86-64-v3"),
              HasSubstr("PADTO(0,11) LOCAL(1,0) LOCAL(0,11)"));
  // 25 tiles of twelve would become 26, which is too much; five of them are packed together.
  FormulaKernel k = KernelOf(kTransposed, "i=300,j=320,k=300");
  const Target target = Avx512Target(1);
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s);
  EXPECT_THAT(ActionsToString(s.actions()), HasSubstr("LOCAL(1,0) LOCAL(0,5)"));
}

// Nine blocks of 19 tiles would be ten for two threads; sixteen of eleven are eight for each.
TEST(HeuristicPackingTest, BlocksAreDividedAmongThreads) {
  EXPECT_THAT(Choose(kProduct, "i=1024,j=1024,k=1024", "znver3", 1), HasSubstr("LOCAL(0,19)"));
  EXPECT_THAT(Choose(kProduct, "i=1024,j=1024,k=1024", "znver3", 2),
              HasSubstr("PADTO(0,22) LOCAL(1,0) LOCAL(0,11) THREAD(0,2)"));
}

// Rows along j read another line of B in each step; lanes along j read those of A as they lie.
TEST(HeuristicPackingTest, RowsThatStepFromLineToLineAreNoRows) {
  for (const char* sizes : {"i=4096,j=256,k=4096", "i=1024,j=256,k=1024", "i=1024,j=192,k=1024"}) {
    EXPECT_THAT(Choose(kProduct, sizes, "x86-64-v3"), StartsWith("UPCAST(1,16)")) << sizes;
    EXPECT_THAT(Choose(kTransposed, sizes, "x86-64-v3"), StartsWith("UPCAST(1,16)")) << sizes;
  }
}

// Short floats are widened once, where they are packed: both operands, however small.
TEST(HeuristicPackingTest, ShortFloatsArePackedAsTheyAreUsed) {
  const Target target = Avx2Target(1);
  for (const char* dtypes : {"A=bf16,B=bf16", "A=f16,B=f16"}) {
    FormulaKernel k =
        KernelOf("C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))", "i=48,j=64,k=64", dtypes);
    Scheduler s(*k.graph, k.sink, target);
    ApplyHeuristic(s);
    EXPECT_THAT(ActionsToString(s.actions()), HasSubstr("LOCAL(1,0) LOCAL(0,"));
    PassOptions options;
    options.verify = true;
    const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    int packed = 0;
    for (const UOp* u : Toposort(lowered->sink)) {
      if (u->op != Op::kScratch) continue;
      EXPECT_EQ(u->dtype.scalar, ScalarType::kF32) << dtypes;
      ++packed;
    }
    EXPECT_EQ(packed, 2) << dtypes;
    const KernelBuffers expected(k.sink);
    const KernelBuffers actual(k.sink);
    ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
    ASSERT_EQ(Interpret(lowered->sink, actual.Views()), absl::OkStatus());
    EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << dtypes;
  }
}

}  // namespace
}  // namespace quern
