#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "optimizer/heuristic.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/window_tile.h"
#include "rewrite/kernel_flags.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

// Register tiles of what is no plain matrix product: windows, sums with few outputs along each
// axis, products with a third axis.

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Target Zen5(int cores = 1) {
  Target target = Avx512Target(cores);
  target.llvm_cpu = "znver5";
  target.l1_bytes = 48 << 10;
  target.l2_bytes = 1 << 20;
  return target;
}

// With the slot of "W", if there is one, constant.
std::string Schedule(FormulaKernel k, const Target& target, int64_t constant_slot = -1) {
  if (constant_slot >= 0) k.sink = MarkConstantSlot(*k.graph, k.sink, constant_slot);
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s);
  return ActionsToString(s.actions());
}

std::vector<std::string> RegistersOf(const std::string& schedule) {
  std::vector<std::string> registers;
  const absl::StatusOr<std::vector<Action>> actions = ParseActions(schedule);
  QUERN_CHECK(actions.ok());
  for (const Action& a : *actions) {
    if (a.kind == ActionKind::kUpcast) registers.push_back(ActionToString(a));
  }
  return registers;
}

FormulaKernel Depthwise(int64_t size, int64_t channels) {
  return KernelOf("Y[h,w,c] = sum[p,q](pad(X[h+p-1,w+q-1,c])*W[p,q,c])",
                  Concat("h=", size, ",w=", size, ",c=", channels, ",p=3,q=3"), "",
                  Concat("X=", size, ",", size, ",", channels));
}

// Each row of an image adds a line to the same few sets of the cache if rows lie a multiple of a
// way apart (14 pixels of 512 channels); rows of 112 pixels of 32 channels spread better.
TEST(HeuristicTilesTest, WindowsHaveAsManyRowsAsTheirLinesFindPlaceInTheCache) {
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(14, 512), Zen5())),
              ElementsAre("UPCAST(2,64)", "UPCAST(1,2)"));
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(112, 32), Zen5())),
              ElementsAre("UPCAST(2,16)", "UPCAST(0,8)"));
  // With a cache of as many sets but four times as many ways there is place for more.
  Target larger = Zen5();
  larger.l1_bytes *= 4;
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(14, 512), larger)),
              ElementsAre("UPCAST(2,16)", "UPCAST(1,14)"));
}

// Other cores than the one by which those tiles were measured: neighbouring pixels, for which the
// window's rows come one after the other.
TEST(HeuristicTilesTest, WindowsComeRowByRow) {
  const Target target = Avx512Target(1);
  EXPECT_EQ(Schedule(Depthwise(14, 512), target), "UPCAST(2,32) UPCAST(1,7) UNROLL(1,0)");
  EXPECT_EQ(Schedule(Depthwise(56, 128), target), "UPCAST(2,32) UPCAST(1,4) UNROLL(1,0)");
  EXPECT_THAT(Schedule(Depthwise(14, 512), Zen5()), HasSubstr("UNROLL(1,0) UNROLL(0,0)"));
  // 13 pixels divide into no small tiles; a wide one has its window's rows in turn, too.
  EXPECT_EQ(Schedule(Depthwise(13, 512), target), "UPCAST(2,16) UPCAST(1,13) UNROLL(1,0)");
}

// Rows of a tile that lie along the window's rows share pixels from one of these to the next.
TEST(HeuristicTilesTest, AWindowAlongWhichATileLiesIsUnrolled) {
  const FormulaKernel k = Depthwise(14, 512);
  const auto rows_axis = [&](const char* actions) {
    const Target target = Avx512Target(1);
    Scheduler s(*k.graph, k.sink, target);
    QUERN_CHECK(s.ApplyAll(*ParseActions(actions)).ok());
    const RangeSets sets(s.kernel());
    for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
      if (reduce.node->op == Op::kReduce) return WindowRowsAxis(sets, reduce) != nullptr;
    }
    return false;
  };
  EXPECT_TRUE(rows_axis("UPCAST(2,32) UPCAST(1,7)"));
  EXPECT_FALSE(rows_axis("UPCAST(2,32) UPCAST(0,7)"));
  EXPECT_FALSE(rows_axis("UPCAST(2,32)"));                          // no rows
  EXPECT_FALSE(rows_axis("UPCAST(2,32) UPCAST(1,7) UNROLL(1,0)"));  // no second axis
}

// What rows of a gigabyte leave in the cache is not counted line by line.
TEST(HeuristicTilesTest, LongRowsAreNoWork) {
  const FormulaKernel k = KernelOf("c[j] = sum[i](X[i,j])", "i=32,j=1073741824");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(Schedule(k, Zen5()), HasSubstr("UPCAST("));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(400));
}

bool HasWindowTiles(const FormulaKernel& k) {
  const Target target = Zen5();
  const Scheduler s(*k.graph, k.sink, target);
  const RangeSets sets(s.kernel());
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  return !WindowTiles(s, sets, all[0], *FindStore(all), s.axes()[2].range).empty();
}

// Where lanes move through the window themselves, its lines are shared by neighbouring lanes.
TEST(HeuristicTilesTest, AWindowAlongTheLanesIsNoWindowOfRows) {
  EXPECT_TRUE(HasWindowTiles(Depthwise(14, 512)));
  EXPECT_FALSE(HasWindowTiles(
      KernelOf("Y[c,h,w] = sum[p,q](X[c,h+p,w+q]*V[p,w])", "c=64,h=112,w=112,p=3,q=3")));
}

// Two threads that write pieces of 1 KiB in turns fetch each other's lines.
TEST(HeuristicTilesTest, ThreadsDivideAnOuterLoopOfWhatIsNoProduct) {
  EXPECT_THAT(Schedule(Depthwise(112, 64), Zen5(2)), HasSubstr("THREAD(0,2)"));
}

// Also if the rows must be padded for it, but not for two threads of two rows and one.
TEST(HeuristicTilesTest, ThreadsDivideAFewRowsThatArePadded) {
  EXPECT_THAT(Schedule(Depthwise(7, 1024), Zen5(2)), HasSubstr("PADTO(0,2) THREAD(0,2)"));
  EXPECT_THAT(Schedule(Depthwise(3, 4096), Zen5(2)), Not(HasSubstr("PADTO(0,2)")));
}

// Pixels that lie pages apart bring two lines each at once, from caches that hold them; but not
// where threads have to divide the channels (seven rows for four), and would fetch each other's
// lines.
TEST(HeuristicTilesTest, PixelsThatLieApartBringTwoLines) {
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(7, 1024), Zen5(1))),
              ElementsAre("UPCAST(2,32)", "UPCAST(1,7)"));
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(7, 1024), Zen5(2))),
              ElementsAre("UPCAST(2,32)", "UPCAST(1,7)"));
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(7, 1024), Zen5(4))).front(), "UPCAST(2,16)");
  EXPECT_THAT(RegistersOf(Schedule(Depthwise(28, 1024), Zen5(1))).front(), "UPCAST(2,16)");
}

Target CpuNamed(const char* llvm_cpu) {
  Target target = Avx512Target();
  target.llvm_cpu = llvm_cpu;
  return target;
}

// Two steps at once of rows that come from far away; four where rows are known to go side by side.
// A tile of few registers is done with a step soon, so that several go into one pass.
TEST(HeuristicTilesTest, LongSumsArePaddedToWholePassesOfSmallTiles) {
  const auto schedule = [](const char* sizes, const Target& target) {
    return Schedule(KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", sizes), target);
  };
  EXPECT_THAT(schedule("i=96,j=96,k=1023", Avx2Target(1)), HasSubstr("PADTO(2,4)"));
  EXPECT_THAT(schedule("i=96,j=96,k=1023", Avx2Target(1)), HasSubstr("UNROLL(0,4)"));
  EXPECT_THAT(schedule("i=96,j=96,k=1024", Avx2Target(1)), Not(HasSubstr("PADTO(2")));
  EXPECT_THAT(schedule("i=96,j=96,k=99", Avx2Target(1)), Not(HasSubstr("UNROLL")));
  EXPECT_THAT(schedule("i=96,j=96,k=1023", Avx512Target(1)), Not(HasSubstr("UNROLL")));
}

TEST(HeuristicTilesTest, AsManyStepsFromMemoryAsRowsGoBesideEachOther) {
  const auto schedule = [](const char* sizes, const char* cpu) {
    return Schedule(KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", sizes), CpuNamed(cpu));
  };
  EXPECT_THAT(schedule("i=16,j=1024,k=1024", "znver4"), HasSubstr("UNROLL(0,2)"));
  EXPECT_THAT(schedule("i=16,j=1024,k=1024", "znver5"), HasSubstr("UNROLL(0,4)"));
  EXPECT_THAT(schedule("i=16,j=64,k=64", "znver4"), HasSubstr("UNROLL(0,4)"));
}

// Two rows at once, where a row is combined and read again, the first-level cache holds it, and
// there are registers for both.
TEST(HeuristicTilesTest, RowsGoInPairs) {
  constexpr const char* kSoftmax =
      "Y[i,j] = exp(X[i,j]-max[l](X[i,l]))/sum[m](exp(X[i,m]-max[l](X[i,l])))";
  const auto pairs = [](const char* formula, const char* sizes, const Target& target) {
    const std::vector<std::string> registers =
        RegistersOf(Schedule(KernelOf(formula, sizes), target));
    return std::count(registers.begin(), registers.end(), "UPCAST(0,2)");
  };
  const Target target = Avx512Target();
  const char* small = "i=16,j=512,l=512,m=512";
  EXPECT_EQ(pairs(kSoftmax, small, target), 1);
  EXPECT_EQ(pairs("Y[i,j] = X[i,j]/sqrt(sum[k](X[i,k]*X[i,k]))", "i=16,j=512,k=512", target), 1);
  EXPECT_EQ(pairs("m[i] = max[j](X[i,j]); "
                  "a[i] = min[j](where(X[i,j] == m[i], i32(j), 2147483647))",
                  "i=16,j=512", target),
            1);
  // From memory where the core is known to gain by it.
  const char* large = "i=16384,j=512,l=512,m=512";
  EXPECT_EQ(pairs(kSoftmax, large, target), 0);
  EXPECT_EQ(pairs(kSoftmax, large, CpuNamed("znver4")), 0);
  EXPECT_EQ(pairs(kSoftmax, large, CpuNamed("znver5")), 1);
  EXPECT_EQ(pairs(kSoftmax, "i=17,j=512,l=512,m=512", target), 0);
  EXPECT_EQ(pairs(kSoftmax, "i=0,j=512,l=512,m=512", target), 0);
  EXPECT_EQ(pairs(kSoftmax, "i=16,j=16384,l=16384,m=16384", target), 0);
  EXPECT_EQ(pairs(kSoftmax, small, Avx2Target()), 0);
  EXPECT_EQ(pairs("r[i] = sum[j](x[i,j])", "i=16,j=512", target), 0);
  EXPECT_EQ(pairs("c[j] = sum[i](x[i,j])", "i=16,j=512", target), 0);
}

// What is only added comes faster from memory in eight streams if the core is known for it; from
// caches, and where the loads are no operands of the additions, it does not.
TEST(HeuristicTilesTest, SumsOfRowsFarAwayAreReadInStreams) {
  const auto rows = [](const char* formula, const char* sizes, const char* cpu = "znver5") {
    return RegistersOf(Schedule(KernelOf(formula, sizes), CpuNamed(cpu)));
  };
  constexpr const char* kRowSum = "r[i] = sum[j](x[i,j])";
  EXPECT_THAT(rows(kRowSum, "i=16384,j=4096", "znver4"), IsEmpty());
  EXPECT_THAT(rows(kRowSum, "i=16384,j=4096"), ElementsAre("UPCAST(0,8)"));
  EXPECT_THAT(rows(kRowSum, "i=16383,j=4096"), ElementsAre("UPCAST(0,8)"));
  EXPECT_THAT(rows(kRowSum, "i=100,j=1000000"), ElementsAre("UPCAST(0,4)"));
  EXPECT_THAT(rows(kRowSum, "i=61,j=1000000"), IsEmpty());
  EXPECT_THAT(rows(kRowSum, "i=1024,j=4096"), IsEmpty());
  EXPECT_THAT(rows("s[i] = sum[j](X[i,j]*X[i,j])", "i=16384,j=4096"), IsEmpty());
  EXPECT_THAT(rows("s[i] = max[j](X[i,j])", "i=16384,j=4096"), IsEmpty());
}

FormulaKernel FewOutputs(int64_t outputs) {
  return KernelOf("Y[h,w,o] = sum[c,p,q](X[h+p,w+q,c]*W[p,q,c,o])",
                  Concat("h=32,w=32,o=", outputs, ",c=64,p=2,q=2"));
}

// Three outputs fill few lanes, and pixels lie 64 channels apart: the lanes go along the channels,
// for which the weights are packed.
TEST(HeuristicTilesTest, SumsWithFewOutputsHaveLanesAlongTheSum) {
  const std::string schedule = Schedule(FewOutputs(3), Zen5(), 1);
  EXPECT_THAT(schedule, HasSubstr("UNROLL(0,16) UPCAST(2,3) UPCAST(1,4)"));
  EXPECT_THAT(schedule, HasSubstr("LOCAL("));
}

TEST(HeuristicTilesTest, SumsWithManyOutputsHaveLanesAlongThem) {
  EXPECT_THAT(Schedule(FewOutputs(64), Zen5(), 1), Not(HasSubstr("UNROLL(0,16)")));
}

TEST(HeuristicTilesTest, AnOperandUsedAFewTimesIsNotPackedForLanesAlongTheSum) {
  const auto schedule = [](int64_t rows) {
    return Schedule(KernelOf("Y[h,o] = sum[c](X[h,c]*W[c,o])", Concat("h=", rows, ",o=3,c=1024")),
                    Zen5(), 1);
  };
  EXPECT_THAT(schedule(64), HasSubstr("UNROLL(0,16)"));
  EXPECT_THAT(schedule(8), Not(HasSubstr("UNROLL(0,16)")));
}

TEST(HeuristicTilesTest, LanesAlongTheSumGiveTheSameNumbers) {
  for (const char* sizes : {"h=9,w=8,o=3,c=64,p=2,q=2", "h=16,w=12,o=2,c=32,p=3,q=1"}) {
    FormulaKernel k = KernelOf("Y[h,w,o] = sum[c,p,q](X[h+p,w+q,c]*W[p,q,c,o])", sizes);
    k.sink = MarkConstantSlot(*k.graph, k.sink, 1);
    const Target target = HereWithShapeOf(Zen5());
    Scheduler s(*k.graph, k.sink, target);
    ApplyHeuristic(s);
    EXPECT_THAT(ActionsToString(s.actions()), HasSubstr("UNROLL(0,16)"));
    std::unique_ptr<CpuDevice> device = *CpuDevice::Create(1);
    EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, *device), "") << sizes;
  }
}

FormulaKernel Capsule(int64_t outputs) {
  return KernelOf("Y[h,w,i,j,o] = sum[p,q,k,c](pad(X[h+p-1,w+q-1,i,k,c])*W[p,q,k,j,c,o])",
                  Concat("h=8,w=8,i=4,j=4,k=4,p=3,q=3,c=16,o=", outputs), "", "X=8,8,4,4,16");
}

// One register of lanes by eight rows leaves the multipliers waiting for each other; two registers
// by eight do not.
TEST(HeuristicTilesTest, AProductWithFewSumsGetsRowsAlongAThirdAxis) {
  EXPECT_EQ(RegistersOf(Schedule(Capsule(16), Zen5(), 1)).size(), 3);
  EXPECT_EQ(RegistersOf(Schedule(Capsule(32), Zen5(), 1)).size(), 2);
}

// Images of a batch would fill lanes without padding, but each lane would be stored to a page of
// its own.
TEST(HeuristicTilesTest, LanesOnPagesOfTheirOwnCostMoreThanPadding) {
  const FormulaKernel k = KernelOf("Y[n,o,h,w] = sum[c](X[n,c,2*h,2*w]*W[o,c])",
                                   "n=16,o=512,h=28,w=28,c=256", "", "X=16,256,56,56");
  EXPECT_THAT(RegistersOf(Schedule(k, Avx2Target(1))), ElementsAre("UPCAST(3,16)", "UPCAST(1,6)"));
}

}  // namespace
}  // namespace quern
