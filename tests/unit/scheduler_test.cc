#include "optimizer/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rewrite/build.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/scan.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

// Schedulers keep a reference to their target.
const Target kWide = Avx512Target();

constexpr const char* kMatmul = "C[i,j] = sum[k](A[i,k]*B[k,j])";
constexpr const char* kRowSum = "r[i] = sum[j](x[i,j])";
constexpr const char* kBf16Product = "C[i,j] = sum[k](f32(A[i,k])*f32(B[j,k]))";

std::vector<Action> Actions(const char* list) {
  absl::StatusOr<std::vector<Action>> actions = ParseActions(list);
  QUERN_CHECK(actions.ok());
  return *actions;
}

struct Refusal {
  const char* formula;
  const char* sizes;
  const char* before;   // applied first, must succeed
  const char* refused;  // one action
  const char* reason;
};

// `target` decides what is refused; nothing may change.
void ExpectRefused(const Refusal& r, const Target& target, const char* dtypes = "") {
  SCOPED_TRACE(Concat(r.formula, " | ", r.before, " | ", r.refused));
  FormulaKernel k = KernelOf(r.formula, r.sizes, dtypes);
  Scheduler scheduler(*k.graph, k.sink, target);
  ASSERT_TRUE(scheduler.ApplyAll(Actions(r.before)).ok());
  const UOp* kernel = scheduler.kernel();
  const std::vector<Action> applied = scheduler.actions();
  const size_t axes = scheduler.axes().size();
  const absl::Status status = scheduler.Apply(Actions(r.refused)[0]);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(r.reason));
  EXPECT_THAT(std::string(status.message()), HasSubstr(r.refused));  // It names the action.
  EXPECT_EQ(scheduler.kernel(), kernel);
  EXPECT_EQ(scheduler.actions(), applied);
  EXPECT_EQ(scheduler.axes().size(), axes);
}

TEST(SchedulerRefusalTest, AxesAndAmounts) {
  for (const Refusal& r : std::vector<Refusal>{
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(3,2)", "there is no axis 3"},
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(-1,2)", "there is no axis -1"},
           {kMatmul, "i=8,j=8,k=8", "", "LOCAL(9,2)", "there is no axis 9"},
           {kMatmul, "i=8,j=8,k=8", "", "THREAD(9,2)", "there is no axis 9"},
           {kMatmul, "i=8,j=8,k=8", "", "PADTO(9,32)", "there is no axis 9"},
           {kMatmul, "i=8,j=8,k=8", "", "SWAP(9,0)", "there is no axis 9"},
           {kMatmul, "i=8,j=8,k=8", "", "SWAP(0,9)", "there is no axis 9"},
           {kMatmul, "i=8,j=8,k=8", "", "SWAP(0,-1)", "there is no axis -1"},
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(0,3)", "3 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(0,16)", "16 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(0,-1)", "negative"},
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(0,1)", "changes nothing"},
           {kMatmul, "i=8,j=8,k=8", "", "UNROLL(0,3)", "3 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "UNROLL(0,-8)", "negative"},
           {kMatmul, "i=8,j=8,k=8", "", "GROUP(0,5)", "5 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "GROUPTOP(0,5)", "5 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "LOCAL(0,-2)", "negative"},
           {kMatmul, "i=8,j=8,k=8", "", "THREAD(0,3)", "3 does not divide the size 8"},
           {kMatmul, "i=8,j=8,k=8", "", "THREAD(0,-2)", "negative"},
           // "The whole axis" of one iteration.
           {kMatmul, "i=1,j=8,k=1", "", "UPCAST(0,0)", "changes nothing"},
           {kMatmul, "i=1,j=8,k=1", "", "UNROLL(0,0)", "changes nothing"},
           // Nothing can be split that has no elements.
           {kMatmul, "i=0,j=8,k=8", "", "UPCAST(0,0)", "changes nothing"},
           {kMatmul, "i=0,j=8,k=8", "", "PADTO(0,8)", "is empty"},
           // A kernel without reduce axes has none to unroll.
           {"y[i] = x[i]+1", "i=8", "", "UNROLL(0,4)", "there is no reduce axis 0"},
           {"y[i] = x[i]+1", "i=8", "", "GROUP(0,4)", "there is no reduce axis 0"},
           {"y[i] = x[i]+1", "i=8", "", "GROUPTOP(0,4)", "there is no reduce axis 0"},
           {"y[i] = x[i]+1", "i=8", "", "TC(0)", "there is no reduce axis 0"},
           // UNROLL counts reduce axes: number 1 would be an output axis.
           {kMatmul, "i=8,j=8,k=8", "", "UNROLL(1,4)", "there is no reduce axis 1; there are 1"},
           {kRowSum, "i=8,j=8", "", "UNROLL(-1,4)", "there is no reduce axis -1"},
       }) {
    ExpectRefused(r, kWide);
  }
}

TEST(SchedulerRefusalTest, KindsOfAxes) {
  for (const Refusal& r : std::vector<Refusal>{
           {kMatmul, "i=8,j=8,k=8", "", "UPCAST(2,4)", "is reduced; UNROLL it"},
           {kMatmul, "i=8,j=8,k=8", "", "LOCAL(2,4)", "is not an output loop"},
           {kMatmul, "i=8,j=8,k=8", "LOCAL(0,4)", "LOCAL(2,2)", "is not an output loop"},
           {kMatmul, "i=8,j=8,k=8", "", "THREAD(2,2)", "cut it with GROUPTOP first"},
           {kMatmul, "i=8,j=8,k=8", "LOCAL(0,4)", "THREAD(2,2)", "is not an output loop"},
           {kMatmul, "i=8,j=8,k=8", "GROUPTOP(0,2)", "GROUPTOP(0,2)", "into blocks already"},
           // One thread axis at most, and it stays as it is.
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "THREAD(1,2)", "threads already"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "THREAD(0,2)", "is not an output loop"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "UPCAST(0,2)", "is threads"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "LOCAL(0,2)", "is not an output loop"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "PADTO(0,3)", "is threads"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "SWAP(0,1)", "is not a loop"},
           {kMatmul, "i=8,j=8,k=8", "THREAD(0,2)", "SWAP(1,0)", "is not a loop"},
           {kMatmul, "i=64,j=8,k=8", "", "THREAD(0,8)", "8 threads on 4 cores"},
           {kMatmul, "i=8,j=8,k=8", "", "SWAP(0,0)", "not swapped with itself"},
           {kMatmul, "i=8,j=8,k=8", "", "SWAP(2,2)", "not swapped with itself"},
           {kMatmul, "i=8,j=8,k=8", "NOLOCALS", "LOCAL(0,2)", "NOLOCALS forbids it"},
           {kMatmul, "i=8,j=8,k=8", "NOLOCALS", "NOLOCALS", "it holds already"},
           {kMatmul, "i=8,j=8,k=8", "LOCAL(0,2)", "NOLOCALS", "LOCAL axes already"},
       }) {
    ExpectRefused(r, kWide);
  }
}

TEST(SchedulerRefusalTest, RegisterAxesTakeNoMoreActions) {
  // UPCAST(0,0) on a row sum leaves the axes j (REDUCE), i (UPCAST).
  for (const Refusal& r : std::vector<Refusal>{
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "UPCAST(1,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "LOCAL(1,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "THREAD(1,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "PADTO(1,3)", "in registers already"},
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "SWAP(0,1)", "is not a loop"},
           {kRowSum, "i=8,j=8", "UPCAST(0,0)", "SWAP(1,0)", "is not a loop"},
           {kRowSum, "i=8,j=8", "UNROLL(0,0)", "PADTO(1,3)", "in registers already"},
           {kRowSum, "i=8,j=8", "UNROLL(0,0)", "UPCAST(1,4)", "in registers already"},
           // What is in registers is no reduce axis that UNROLL could count any more.
           {kRowSum, "i=8,j=8", "UNROLL(0,0)", "UNROLL(0,2)", "there is no reduce axis 0"},
           {kRowSum, "i=8,j=8", "GROUP(0,0)", "UNROLL(0,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "GROUP(0,0)", "GROUP(0,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "GROUP(0,0)", "GROUPTOP(0,2)", "in registers already"},
           {kRowSum, "i=8,j=8", "GROUP(0,4)", "GROUP(0,2)", "in registers already"},
           // 128 x 128 copies are more than any register file holds.
           {kMatmul, "i=128,j=128,k=4", "UPCAST(1,0)", "UPCAST(0,0)", "elements in registers"},
       }) {
    ExpectRefused(r, kWide);
  }
}

TEST(SchedulerRefusalTest, Padding) {
  for (const Refusal& r : std::vector<Refusal>{
           {kRowSum, "i=8,j=6", "", "PADTO(0,64)", "would become 64, more than four times"},
           {kRowSum, "i=8,j=6", "", "PADTO(1,32)", "would become 32, more than four times"},
           {kRowSum, "i=8,j=6", "", "PADTO(0,4)", "is a multiple of 4 already"},
           {kRowSum, "i=8,j=6", "", "PADTO(0,1)", "must be 2 or more"},
           {kRowSum, "i=8,j=6", "", "PADTO(0,0)", "must be 2 or more"},
           {kRowSum, "i=8,j=6", "", "PADTO(0,-8)", "must be 2 or more"},
       }) {
    ExpectRefused(r, kWide);
  }
  // Exactly four times is allowed.
  FormulaKernel k = KernelOf(kRowSum, "i=8,j=6");
  Scheduler scheduler(*k.graph, k.sink, kWide);
  ASSERT_TRUE(scheduler.ApplyAll(Actions("PADTO(0,32) PADTO(1,24)")).ok());
  EXPECT_EQ(scheduler.axes()[0].size, 32);
  EXPECT_EQ(scheduler.axes()[1].size, 24);
}

TEST(SchedulerRefusalTest, MatrixInstructions) {
  Target with = kWide;
  with.features.push_back("avx512bf16");
  const char* bf16 = "A=bf16,B=bf16";
  ExpectRefused({kBf16Product, "i=4,j=4,k=8", "", "TC(0)", "this CPU lacks avx512bf16"}, kWide,
                bf16);
  ExpectRefused({kBf16Product, "i=4,j=4,k=7", "", "TC(0)", "7 is no multiple of 2"}, with, bf16);
  ExpectRefused({kBf16Product, "i=4,j=4,k=8", "TC(0)", "TC(0)", "uses matrix instructions"}, with,
                bf16);
  ExpectRefused({kBf16Product, "i=4,j=4,k=8", "GROUPTOP(0,2)", "TC(0)", "no plain reduce loop"},
                with, bf16);
  ExpectRefused({kMatmul, "i=4,j=4,k=8", "", "TC(0)", "no product of two widened"}, with);
  ExpectRefused({kRowSum, "i=4,j=8", "", "TC(0)", "no product of two widened"}, with);
  ExpectRefused({"r[i] = max[j](x[i,j])", "i=4,j=8", "", "TC(0)", "the reduction is no sum"}, with);
  FormulaKernel k = KernelOf(kBf16Product, "i=4,j=4,k=8", bf16);
  Scheduler scheduler(*k.graph, k.sink, with);
  EXPECT_TRUE(scheduler.Apply({ActionKind::kTensorCore, 0, 0}).ok());
}

// Two outputs, of which one does not have the axis.
TEST(SchedulerRefusalTest, ThreadsNeedAnAxisOfEveryOutput) {
  UOpGraph g;
  const UOp* i = Range(g, 8, 0, AxisType::kLoop);
  const UOp* j = Range(g, 8, 1, AxisType::kLoop);
  const UOp* one = FloatConst(g, kF32Type, 1);
  const std::vector<const UOp*> stores = {
      Store(g, Index(g, Param(g, kF32Type, 0, 64), Add(g, Mul(g, i, IndexConst(g, 8)), j)), one),
      Store(g, Index(g, Param(g, kF32Type, 1, 8), i), one)};
  Scheduler scheduler(g, Sink(g, stores), kWide);
  const UOp* before = scheduler.kernel();
  const absl::Status status = scheduler.Apply({ActionKind::kThread, 1, 2});
  EXPECT_THAT(std::string(status.message()), HasSubstr("not an axis of every output"));
  EXPECT_EQ(scheduler.kernel(), before);
  EXPECT_TRUE(scheduler.Apply({ActionKind::kThread, 0, 2}).ok());
}

// Axes after a list of actions, as "LOOP 8, REDUCE 6".
std::string Shape(const char* formula, const char* sizes, const char* list,
                  const Target& target = kWide, const char* dtypes = "") {
  FormulaKernel k = KernelOf(formula, sizes, dtypes);
  Scheduler scheduler(*k.graph, k.sink, target);
  if (absl::Status s = scheduler.ApplyAll(Actions(list)); !s.ok()) return std::string(s.message());
  EXPECT_TRUE(VerifyKernel(scheduler.kernel()).ok())
      << list << ": " << VerifyKernel(scheduler.kernel());
  std::string shape;
  for (const Axis& a : scheduler.axes()) {
    Append(shape, shape.empty() ? "" : ", ", AxisTypeName(a.type), " ", a.size);
  }
  return shape;
}

TEST(SchedulerTest, NewAxesComeAtTheirPlaces) {
  const char* sizes = "i=8,j=16,k=32";
  const auto shape = [&](const char* list) { return Shape(kMatmul, sizes, list); };
  EXPECT_EQ(shape(""), "LOOP 8, LOOP 16, REDUCE 32");
  EXPECT_EQ(shape("UPCAST(0,4)"), "LOOP 2, LOOP 16, REDUCE 32, UPCAST 4");
  EXPECT_EQ(shape("UPCAST(0,4) UPCAST(1,8)"), "LOOP 2, LOOP 2, REDUCE 32, UPCAST 4, UPCAST 8");
  EXPECT_EQ(shape("UNROLL(0,4)"), "LOOP 8, LOOP 16, REDUCE 8, UNROLL 4");
  EXPECT_EQ(shape("UNROLL(0,4) UPCAST(1,8)"), "LOOP 8, LOOP 2, REDUCE 8, UPCAST 8, UNROLL 4");
  EXPECT_EQ(shape("LOCAL(0,4)"), "LOOP 2, LOOP 16, LOCAL 4, REDUCE 32");
  EXPECT_EQ(shape("LOCAL(1,8)"), "LOOP 8, LOOP 2, LOCAL 8, REDUCE 32");
  EXPECT_EQ(shape("LOCAL(0,4) UPCAST(1,16)"), "LOOP 2, LOCAL 4, REDUCE 32, UPCAST 16");
  EXPECT_EQ(shape("GROUP(0,4)"), "LOOP 8, LOOP 16, GROUP_REDUCE 4, REDUCE 8");
  EXPECT_EQ(shape("GROUPTOP(0,4)"), "LOOP 8, LOOP 16, GROUPTOP 4, REDUCE 8");
  EXPECT_EQ(shape("THREAD(1,4)"), "THREAD 4, LOOP 8, LOOP 4, REDUCE 32");
  EXPECT_EQ(shape("GROUPTOP(0,4) THREAD(2,4)"), "THREAD 4, LOOP 8, LOOP 16, REDUCE 8");
  EXPECT_EQ(shape("SWAP(0,2)"), "REDUCE 32, LOOP 16, LOOP 8");
  EXPECT_EQ(shape("PADTO(0,6)"), "LOOP 12, LOOP 16, REDUCE 32");
  EXPECT_EQ(shape("NOLOCALS"), "LOOP 8, LOOP 16, REDUCE 32");
  // An amount of 0, or the size itself, leaves no loop.
  EXPECT_EQ(shape("UPCAST(0,0)"), "LOOP 16, REDUCE 32, UPCAST 8");
  EXPECT_EQ(shape("UPCAST(0,8)"), "LOOP 16, REDUCE 32, UPCAST 8");
  EXPECT_EQ(shape("UNROLL(0,0)"), "LOOP 8, LOOP 16, UNROLL 32");
  EXPECT_EQ(shape("UPCAST(0,0) UPCAST(0,0) UNROLL(0,0)"), "UPCAST 8, UPCAST 16, UNROLL 32");
}

TEST(SchedulerTest, MatrixAxesComeLast) {
  Target target = kWide;
  target.features.push_back("avx512bf16");
  const char* dtypes = "A=bf16,B=bf16";
  EXPECT_EQ(Shape(kBf16Product, "i=4,j=4,k=8", "TC(0)", target, dtypes),
            "LOOP 4, LOOP 4, REDUCE 4, WARP 2");
  EXPECT_EQ(Shape(kBf16Product, "i=4,j=4,k=8", "TC(0) UPCAST(1,4)", target, dtypes),
            "LOOP 4, REDUCE 4, UPCAST 4, WARP 2");
}

TEST(SchedulerTest, ReduceAxesAreCountedSeparately) {
  FormulaKernel k = KernelOf("y[i] = sum[a,b](x[i,a,b])", "i=4,a=6,b=8");
  Scheduler scheduler(*k.graph, k.sink, kWide);
  EXPECT_THAT(scheduler.reduce_axes(), testing::ElementsAre(1, 2));
  ASSERT_TRUE(scheduler.ApplyAll(Actions("UNROLL(1,4)")).ok());
  EXPECT_EQ(scheduler.axes()[2].size, 2);
  EXPECT_EQ(scheduler.axes()[3].type, AxisType::kUnroll);
  EXPECT_THAT(scheduler.reduce_axes(), testing::ElementsAre(1, 2));
}

TEST(SchedulerTest, ApplyAllStopsAtTheFirstRefusal) {
  FormulaKernel k = MatmulKernel(8, 8, 8);
  Scheduler scheduler(*k.graph, k.sink, kWide);
  const absl::Status status = scheduler.ApplyAll(Actions("UPCAST(0,4) UPCAST(1,3) UNROLL(0,2)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("UPCAST(1,3)"));
  EXPECT_EQ(ActionsToString(scheduler.actions()), "UPCAST(0,4)");
}

TEST(SchedulerTest, TheSameActionsGiveTheSameKernel) {
  FormulaKernel first = MatmulKernel(64, 64, 64);
  FormulaKernel second = MatmulKernel(64, 64, 64);
  const char* list = "UPCAST(1,32) UPCAST(0,4) LOCAL(0,0) THREAD(0,2)";
  Scheduler a(*first.graph, first.sink, kWide);
  Scheduler b(*second.graph, second.sink, kWide);
  ASSERT_TRUE(a.ApplyAll(Actions(list)).ok());
  ASSERT_TRUE(b.ApplyAll(Actions(list)).ok());
  EXPECT_EQ(a.kernel()->hash, b.kernel()->hash);
  EXPECT_NE(a.kernel()->hash, first.sink->hash);
}

TEST(SchedulerTest, SwappingTwiceGivesTheKernelBack) {
  FormulaKernel k = KernelOf("y[i,j,l] = x[j,i,l]+1", "i=3,j=4,l=5");
  Scheduler scheduler(*k.graph, k.sink, kWide);
  ASSERT_TRUE(scheduler.Apply({ActionKind::kSwap, 0, 1}).ok());
  EXPECT_NE(scheduler.kernel(), k.sink);
  EXPECT_EQ(scheduler.axes()[0].size, 4);
  ASSERT_TRUE(scheduler.Apply({ActionKind::kSwap, 0, 1}).ok());
  EXPECT_EQ(scheduler.kernel(), k.sink);
}

// What an action leaves must compute what the kernel computed, by the interpreter.
TEST(SchedulerTest, SchedulesKeepTheValue) {
  struct Case {
    const char* formula;
    const char* sizes;
    std::vector<const char*> lists;
  };
  for (const Case& c : std::vector<Case>{
           {kMatmul,
            "i=6,j=10,k=12",
            {"UPCAST(0,3)", "UPCAST(1,5) UNROLL(0,4)", "LOCAL(0,2) LOCAL(1,5)", "GROUP(0,3)",
             "GROUPTOP(0,4)", "GROUPTOP(0,4) THREAD(2,4)", "THREAD(0,2)", "SWAP(0,2)", "SWAP(1,2)",
             "PADTO(0,4)", "PADTO(2,8) UNROLL(0,8)", "PADTO(1,16) UPCAST(1,16) GROUP(0,6)"}},
           {"r[i] = prod[j](x[i,j])", "i=5,j=13", {"PADTO(1,16) UNROLL(0,0)", "PADTO(1,4)"}},
           {"r[i] = min[j](x[i,j])", "i=5,j=13", {"PADTO(1,16) GROUP(0,4)", "PADTO(0,8)"}},
           {"Y[i,j] = exp(X[i,j]-max[l](X[i,l]))/sum[l](exp(X[i,l]-max[m](X[i,m])))",
            "i=4,j=13,l=13,m=13",
            {"PADTO(0,8)", "THREAD(0,2)", "UPCAST(0,4)", "PADTO(2,16)", "PADTO(1,16)"}},
       }) {
    FormulaKernel k = KernelOf(c.formula, c.sizes);
    const KernelBuffers expected(k.sink);
    ASSERT_TRUE(Interpret(k.sink, expected.Views()).ok());
    for (const char* list : c.lists) {
      Scheduler scheduler(*k.graph, k.sink, kWide);
      const absl::Status applied = scheduler.ApplyAll(Actions(list));
      ASSERT_TRUE(applied.ok()) << applied;
      ASSERT_TRUE(VerifyKernel(scheduler.kernel()).ok())
          << list << ": " << VerifyKernel(scheduler.kernel());
      const KernelBuffers actual(k.sink);
      const absl::Status run = Interpret(scheduler.kernel(), actual.Views());
      ASSERT_TRUE(run.ok()) << run << PseudoCode(scheduler.kernel());
      EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << c.formula << " | " << list;
    }
  }
}

TEST(SchedulerTest, ThisMachinesCoresLimitThreads) {
  FormulaKernel k = MatmulKernel(4096, 4, 4);
  const Target target = DetectCpu();
  Scheduler scheduler(*k.graph, k.sink, target);
  EXPECT_FALSE(scheduler.Apply({ActionKind::kThread, 0, 4096}).ok());
  EXPECT_EQ(scheduler.kernel(), k.sink);
  if (target.cores >= 2) EXPECT_TRUE(scheduler.Apply({ActionKind::kThread, 0, 2}).ok());
  // What is scanned goes part by part, in more parts than there are cores; other axes do not.
  FormulaKernel rows =
      KernelOf("Y[r,i] = sum[j](where(j <= i, X[r,j], 0))", "r=65536,i=131072,j=131072");
  Scheduler scans(*rows.graph, RecognizeScans(*rows.graph, rows.sink), target);
  EXPECT_FALSE(scans.Apply({ActionKind::kThread, 0, 4096}).ok());
  EXPECT_FALSE(scans.Apply({ActionKind::kThread, 1, 0}).ok());
  EXPECT_TRUE(scans.Apply({ActionKind::kThread, 1, 65536}).ok());
}

}  // namespace
}  // namespace quern
