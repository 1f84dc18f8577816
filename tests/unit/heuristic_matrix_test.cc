#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

// Schedules of products that matrix instructions compute: their operands want groups of neighbours
// along the sum.

namespace quern {
namespace {

using ::testing::Contains;
using ::testing::Not;

Target VnniTarget() {
  Target target = Avx512Target(1);
  target.features.push_back("avx512vnni");
  return target;
}

std::vector<Action> Choose(const FormulaKernel& k, const Target& target) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  EXPECT_TRUE(VerifyKernel(scheduler.kernel()).ok()) << VerifyKernel(scheduler.kernel());
  return scheduler.actions();
}

// The size of the largest axis of a type; 0 for none.
int64_t LargestAxis(const FormulaKernel& k, const Target& target, AxisType type) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  int64_t largest = 0;
  for (const Axis& a : scheduler.axes()) {
    if (a.type == type) largest = std::max(largest, a.size);
  }
  return largest;
}

TEST(HeuristicMatrixTest, MatrixInstructionsWhereTheCpuHasThem) {
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](f32(A[i,k])*f32(B[j,k]))", "i=64,j=64,k=64", "A=bf16,B=bf16");
  Target target = Avx512Target();
  EXPECT_THAT(Choose(k, target), Not(Contains(Action{ActionKind::kTensorCore, 0, 0})));
  target.features.push_back("avx512bf16");
  target.llvm_cpu = "znver5";
  EXPECT_THAT(Choose(k, target), Contains(Action{ActionKind::kTensorCore, 0, 0}));
}

TEST(HeuristicMatrixTest, MatrixTimesVectorHasNoMatrixInstructions) {
  const Target target = VnniTarget();
  FormulaKernel k = KernelOf("y[i] = sum[k](i32(A[i,k])*i32(x[k]))", "i=512,k=512", "A=i8,x=u8");
  EXPECT_THAT(Choose(k, target), Not(Contains(Action{ActionKind::kTensorCore, 0, 0})));
  EXPECT_GE(LargestAxis(k, target, AxisType::kUnroll), 16);
}

// Planes of channels: the pixels of a group lie apart, so blocks of the image are packed, too.
TEST(HeuristicMatrixTest, PlanesOfChannelsArePackedByGroups) {
  const Target target = VnniTarget();
  FormulaKernel k = KernelOf("y[o,h,w] = sum[c,r,s](i32(x[c,h+r,w+s])*i32(f[o,c,r,s]))",
                             "o=64,h=56,w=56,c=64,r=3,s=3", "x=u8,f=i8");
  const std::vector<Action> actions = Choose(k, target);
  EXPECT_THAT(actions, Contains(Action{ActionKind::kTensorCore, 0, 0}));
  int locals = 0;
  for (const Action& a : actions) locals += a.kind == ActionKind::kLocal ? 1 : 0;
  EXPECT_EQ(locals, 2) << ActionsToString(actions);
}

// A matrix instruction wants groups of neighbours: what lies apart is packed however small it is.
TEST(HeuristicMatrixTest, GroupsThatLieApartArePacked) {
  const Target target = VnniTarget();
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))", "i=64,j=64,k=64", "A=u8,B=i8");
  EXPECT_THAT(Choose(k, target), Contains(Action{ActionKind::kTensorCore, 0, 0}));
  EXPECT_GT(LargestAxis(k, target, AxisType::kLocal), 0);
}

constexpr const char* kBytes = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";

// Lanes along i would find their groups as they lie in A, but put those of B together, byte by
// byte, for each tile.
TEST(HeuristicMatrixTest, AFewRowsAreNoLanes) {
  for (int64_t rows : {8, 16, 32, 48}) {
    const std::vector<Action> actions =
        Choose(KernelOf(kBytes, Concat("i=", rows, ",j=1024,k=1024"), "A=u8,B=i8"), VnniTarget());
    ASSERT_THAT(actions, Contains(Action{ActionKind::kTensorCore, 0, 0}));
    ASSERT_GE(actions.size(), 3U) << ActionsToString(actions);
    EXPECT_EQ(actions[1], (Action{ActionKind::kUpcast, 1, 32})) << ActionsToString(actions);
    EXPECT_EQ(actions[2].kind, ActionKind::kUpcast);
    EXPECT_EQ(actions[2].axis, 0) << ActionsToString(actions);
  }
}

// Whatever reads them in place puts groups together again, so two tiles are enough for packing.
TEST(HeuristicMatrixTest, GroupsThatLieApartAreNotReadInPlace) {
  const FormulaKernel k = KernelOf(kBytes, "i=64,j=1000,k=1024", "A=u8,B=i8");
  EXPECT_GT(LargestAxis(k, VnniTarget(), AxisType::kLocal), 0);
  const FormulaKernel two = KernelOf(kBytes, "i=16,j=1000,k=1024", "A=u8,B=i8");
  EXPECT_GT(LargestAxis(two, VnniTarget(), AxisType::kLocal), 0);
}

}  // namespace
}  // namespace quern
