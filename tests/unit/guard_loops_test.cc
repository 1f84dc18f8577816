#include "codegen/guard_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/pseudo_code.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A window of three rows over an image of nine.
constexpr const char* kWindow = "Y[h,o] = sum[p,c](pad(X[h+p-1,c])*W[p,c,o])";
constexpr const char* kWindowSizes = "h=9,o=16,p=3,c=4";
constexpr const char* kWindowShape = "X=9,4";
// Seven by seven, over steps of two.
constexpr const char* kTwoBorders = "Y[t,h,o] = sum[r,p,c](pad(X[2*t+r-3,2*h+p-3,c])*W[r,p,c,o])";
constexpr const char* kTwoSizes = "t=4,h=8,o=16,r=7,p=7,c=3";
constexpr const char* kTwoShape = "X=8,16,3";

// What a pass leaves, as pseudo-code.
std::string After(std::string_view pass_name, const FormulaKernel& k, std::string_view actions) {
  const Target target = Avx512Target(1);
  Scheduler s(*k.graph, k.sink, target);
  QUERN_CHECK(s.ApplyAll(*ParseActions(actions)).ok());
  std::string text;
  PassOptions passes;
  passes.verify = true;
  passes.trace = [&](const Pass& pass, const UOp*, const UOp* after, double) {
    if (pass.name == pass_name) text = PseudoCode(after);
  };
  const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, passes);
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  return text;
}

TEST(GuardLoopsTest, RowsOfAWindowBeyondTheBorderAreLeftOut) {
  const std::string text =
      After("guard-loops", KernelOf(kWindow, kWindowSizes, "", kWindowShape), "UPCAST(1,16)");
  EXPECT_THAT(text, HasSubstr("guard 0 < i0 + k1"));
  EXPECT_THAT(text, HasSubstr("guard i0 + k1 < 10"));
}

TEST(GuardLoopsTest, WhatHasNoBorderHasNoGuard) {
  const FormulaKernel k =
      KernelOf("Y[h,o] = sum[p,c](X[h+p,c]*W[p,c,o])", kWindowSizes, "", "X=11,4");
  EXPECT_THAT(After("guard-loops", k, "UPCAST(1,16)"), Not(HasSubstr("guard")));
}

// Some rows of the tile lie inside.
TEST(GuardLoopsTest, WhatRegistersDecideIsNoGuard) {
  const FormulaKernel k = KernelOf(kWindow, kWindowSizes, "", kWindowShape);
  EXPECT_THAT(After("guard-loops", k, "UPCAST(1,16) UPCAST(0,3)"), Not(HasSubstr("guard")));
}

TEST(GuardLoopsTest, WhatAddsSomethingBeyondTheBorderIsNotLeftOut) {
  const FormulaKernel more =
      KernelOf("Y[h,o] = sum[p](pad(X[h+p-1,o]) + 1)", "h=9,o=16,p=3", "", "X=9,16");
  EXPECT_THAT(After("guard-loops", more, "UPCAST(1,16)"), Not(HasSubstr("guard")));
  const FormulaKernel largest =
      KernelOf("Y[h,o] = max[p](pad(X[h+p-1,o]))", "h=9,o=16,p=3", "", "X=9,16");
  EXPECT_THAT(After("guard-loops", largest, "UPCAST(1,16)"), Not(HasSubstr("guard")));
}

// Loops are cut where that makes few copies; then there is nothing left to ask.
TEST(GuardLoopsTest, ShortNestsAreCutInstead) {
  const std::string text =
      After("split-loops", KernelOf(kWindow, kWindowSizes, "", kWindowShape), "UPCAST(1,16)");
  EXPECT_THAT(text, Not(HasSubstr("guard")));
  EXPECT_THAT(text, Not(HasSubstr(" if ")));
}

TEST(GuardLoopsTest, DeepNestsKeepTheirGuards) {
  const std::string text =
      After("split-loops", KernelOf(kTwoBorders, kTwoSizes, "", kTwoShape), "UPCAST(2,16)");
  EXPECT_THAT(text, HasSubstr("guard"));
}

// A loop of one iteration becomes part of what stands around it; its guard does not.
TEST(GuardLoopsTest, NumbersAreThoseOfTheInterpreter) {
  const std::unique_ptr<CpuDevice> device = *CpuDevice::Create();
  const auto check = [&](const FormulaKernel& k, std::string_view actions) {
    SCOPED_TRACE(actions);
    Scheduler s(*k.graph, k.sink, device->target());
    ASSERT_TRUE(s.ApplyAll(*ParseActions(actions)).ok());
    EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), device->target(), *device), "");
  };
  const FormulaKernel window = KernelOf(kWindow, kWindowSizes, "", kWindowShape);
  for (const char* actions : {"", "UPCAST(1,16)", "UPCAST(1,16) UPCAST(0,3)", "UPCAST(0,9)"}) {
    check(window, actions);
  }
  const FormulaKernel two = KernelOf(kTwoBorders, kTwoSizes, "", kTwoShape);
  for (const char* actions :
       {"", "UPCAST(2,16)", "UPCAST(2,16) SWAP(2,4)", "UPCAST(2,16) UPCAST(1,4) LOCAL(0,0)",
        "UPCAST(2,16) GROUPTOP(0,7)", "UPCAST(2,16) UNROLL(1,0)", "UPCAST(2,16) GROUP(0,0)",
        "UPCAST(2,16) SWAP(0,2)", "UPCAST(2,16) SWAP(0,1) UPCAST(0,2)"}) {
    check(two, actions);
  }
}

// In each half of the sum the guard asks of the thread alone, and so does what it guards, which is
// read before the loop: four gigabytes before the array if nothing asks there.
TEST(GuardLoopsTest, WhatIsReadBeforeALoopKeepsItsMask) {
  NotationOptions options;
  ASSERT_TRUE(ParseSizes("h=2,o=16,p=8", options).ok());
  options.shapes = {{"X", {1}}, {"V", {4, 16}}};
  const absl::StatusOr<Program> program = ParseNotation(
      "Y[h,o] = sum[p](pad(X[1073741824*(h + p//4 - 1)])*(pad(V[p-4,o]) + 1))", options);
  ASSERT_TRUE(program.ok());
  const UOp* kernel = program->kernels[0].sink;
  const std::unique_ptr<CpuDevice> device = *CpuDevice::Create();
  const Target target = HereWithShapeOf(Avx512Target(2));
  Scheduler s(*program->graph, kernel, target);
  ASSERT_TRUE(s.ApplyAll(*ParseActions("UPCAST(1,16) THREAD(0,2)")).ok());
  EXPECT_EQ(RunAgainstInterpreter(*program->graph, kernel, s.kernel(), target, *device), "");
}

TEST(ConjunctsTest, BroadcastsCountAsWhatTheySay) {
  UOpGraph g;
  const UOp* i = Range(g, 8, 0, AxisType::kLoop);
  const UOp* low = Lt(g, IndexConst(g, 1), i);
  const UOp* high = Lt(g, i, IndexConst(g, 7));
  const UOp* both = And(g, low, high);
  EXPECT_THAT(Conjuncts(both), UnorderedElementsAre(low, high));
  EXPECT_THAT(ConjunctsLeft(both, {low}), UnorderedElementsAre(high));
  const UOp* all = g.Make(Op::kBroadcast, kBoolType.WithLanes(4), {both});
  EXPECT_THAT(ConjunctsLeft(all, {low}), UnorderedElementsAre(all));
  EXPECT_THAT(ConjunctsLeft(all, {low, high}), IsEmpty());
}

}  // namespace
}  // namespace quern
