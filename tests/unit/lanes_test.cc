#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "optimizer/tolerance.h"
#include "rewrite/build.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

// Which of the register axes becomes the lanes.

namespace quern {
namespace {

// Lanes of the widest accumulator under these actions; the lowered kernel's numbers are compared
// with those of the unscheduled one.
int LanesOfSums(const FormulaKernel& k, std::string_view actions,
                const Target& target = Avx512Target(1)) {
  Scheduler scheduler(*k.graph, k.sink, target);
  const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
  QUERN_CHECK(parsed.ok());
  const absl::Status applied = scheduler.ApplyAll(*parsed);
  QUERN_CHECK_MSG(applied.ok(), std::string(applied.message()).c_str());
  const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, scheduler.kernel(), target, {});
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  EXPECT_TRUE(Interpret(k.sink, expected.Views()).ok());
  EXPECT_TRUE(Interpret(lowered->sink, actual.Views()).ok());
  EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << actions;
  int lanes = 0;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kStore || u->src(0)->src(0)->op == Op::kParam) continue;
    if (u->src(0)->src(0)->op == Op::kScratch) continue;
    lanes = std::max<int>(lanes, u->src(1)->dtype.lanes);
  }
  return lanes;
}

constexpr const char* kRowsByRows = "C[i,j] = sum[k](A[i,k]*B[j,k])";

// Four neighbours along k of each of 24 rows of B are no block that can be transposed in registers,
// so they would be gathered; the packed operand has its lanes side by side.
TEST(LanesTest, RowsThatAreNoPowerOfTwoAreNoLanes) {
  const FormulaKernel k = KernelOf(kRowsByRows, "i=32,j=48,k=16");
  for (const char* rows : {"12", "24"}) {
    const std::string actions = Concat("UPCAST(0,16) UPCAST(1,", rows, ") UNROLL(0,4) LOCAL(1,0)");
    EXPECT_EQ(LanesOfSums(k, actions), 16) << actions;
  }
}

TEST(LanesTest, BlocksOfAPowerOfTwoAreTransposed) {
  const FormulaKernel k = KernelOf(kRowsByRows, "i=30,j=64,k=16");
  EXPECT_EQ(LanesOfSums(k, "UPCAST(1,16) UPCAST(0,6) UNROLL(0,4)"), 16);
}

// Eight steps of A lie side by side: as lanes they save 42 loads a pass. But each of the 96 outputs
// would have a register of sums.
TEST(LanesTest, LanesOfTheSumThatRegistersDoNotHoldAreNoLanes) {
  const FormulaKernel k = KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=12,j=32,k=512");
  EXPECT_EQ(LanesOfSums(k, "UPCAST(1,16) UPCAST(0,6) UNROLL(0,8) LOCAL(0,0)", Avx2Target(1)), 16);
  // Those of three by four have.
  const FormulaKernel dots = KernelOf(kRowsByRows, "i=12,j=32,k=64");
  EXPECT_EQ(LanesOfSums(dots, "UPCAST(1,4) UPCAST(0,3) UNROLL(0,8)", Avx2Target(1)), 8);
}

// Eight channels by fourteen pixels that lie side by side: pixels as lanes save a load. But LLVM
// takes fourteen of eight lanes apart; of sixteen it does not.
TEST(LanesTest, RegistersAndAHalfAreNoLanes) {
  const FormulaKernel k = KernelOf("Y[o,w] = sum[c](X[c,w]*W[c,o])", "o=16,w=28,c=8");
  const auto lanes = [&k](std::string_view actions, const Target& target) {
    return LanesOfSums(k, actions, target);
  };
  EXPECT_EQ(lanes("UPCAST(0,8) UPCAST(1,14)", Avx2Target(1)), 8);
  EXPECT_EQ(lanes("UPCAST(0,4) UPCAST(1,7)", Avx2Target(1)), 7);
  EXPECT_EQ(lanes("UPCAST(0,8) UPCAST(1,14)", Avx512Target(1)), 14);
}

}  // namespace
}  // namespace quern
