// Rows that are reduced, and reductions to one value: lanes, padding, streams, whole rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kSoftmax =
    "Y[i,j] = exp(X[i,j]-max[l](X[i,l]))/sum[m](exp(X[i,m]-max[l](X[i,l])))";
constexpr const char* kRowMax = "m[i] = max[j](X[i,j])";

std::string Schedule(const char* formula, const std::string& sizes, int cores = 1,
                     const char* dtypes = "") {
  Target target = Avx512Target(cores);
  target.llvm_cpu = "znver5";
  target.l1_bytes = 48 << 10;
  target.l2_bytes = 1 << 20;
  const FormulaKernel k = KernelOf(formula, sizes, dtypes);
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s);
  return ActionsToString(s.actions());
}

std::string Softmax(int64_t columns) {
  return Schedule(kSoftmax, Concat("i=2048,j=", columns, ",l=", columns, ",m=", columns));
}

// Sums that wait for each other cost more than some padding.
TEST(HeuristicRowsTest, LongRowsArePaddedForFourRegisters) {
  for (int64_t columns : {1000, 1008, 1023, 1024}) {
    EXPECT_THAT(Schedule(kRowMax, Concat("i=64,j=", columns)), HasSubstr("UNROLL(0,64)"));
  }
  EXPECT_THAT(Schedule(kRowMax, "i=64,j=1024"), Not(HasSubstr("PADTO")));
  EXPECT_EQ(Schedule(kRowMax, "i=64,j=197"),
            "PADTO(1,32) UNROLL(0,32)");  // 256 would be a third more
  EXPECT_EQ(Schedule(kRowMax, "i=64,j=36"), "PADTO(1,16) UNROLL(0,16) UNROLL(0,0)");
  EXPECT_EQ(Schedule(kRowMax, "i=64,j=100"), "PADTO(1,64) UNROLL(0,64) UNROLL(0,0)");
  // Few steps of one vector are better than padding.
  EXPECT_EQ(Schedule(kRowMax, "i=64,j=112"), "UNROLL(0,16)");
}

// What is written has the steps of what was summed: then one keeps its values for the other.
TEST(HeuristicRowsTest, RowsAreWrittenInTheStepsOfTheirSum) {
  EXPECT_THAT(Softmax(1000), HasSubstr("PADTO(1,64) UPCAST(1,64)"));
  EXPECT_THAT(Softmax(1008), HasSubstr("PADTO(1,64) UPCAST(1,64)"));
  EXPECT_THAT(Softmax(300), HasSubstr("PADTO(1,64) UPCAST(1,64)"));
  EXPECT_THAT(Softmax(288), HasSubstr("PADTO(1,64) UPCAST(1,64)"));
  EXPECT_THAT(Softmax(1024), HasSubstr("UNROLL(1,64) UPCAST(1,64)"));
  // Written by itself, a row needs no such padding.
  EXPECT_EQ(Schedule("Y[i,j] = X[j,i]*0+Z[i,j]", "i=64,j=1008").find("PADTO(1,64)"),
            std::string::npos);
}

// Up to half of the registers as copies; two such rows if they are short.
TEST(HeuristicRowsTest, ShortRowsAreTakenWhole) {
  EXPECT_EQ(Softmax(128),
            "UNROLL(0,64) UNROLL(1,64) UPCAST(1,64) UNROLL(1,0) UNROLL(0,0) UPCAST(1,0) "
            "UPCAST(0,2)");
  EXPECT_EQ(Softmax(256),
            "UNROLL(0,64) UNROLL(1,64) UPCAST(1,64) UNROLL(1,0) UNROLL(0,0) UPCAST(1,0)");
  EXPECT_EQ(Softmax(512), "UNROLL(0,64) UNROLL(1,64) UPCAST(1,64) UPCAST(0,2)");
  EXPECT_THAT(Softmax(80), HasSubstr("UPCAST(1,16) UNROLL(1,0) UNROLL(0,0) UPCAST(1,0)"));
  // Wider numbers fill more registers.
  EXPECT_THAT(Schedule(kSoftmax, "i=2048,j=128,l=128,m=128", 1, "X=f64"),
              AllOf(HasSubstr("UPCAST(1,0)"), Not(HasSubstr("UPCAST(0,2)"))));
  EXPECT_THAT(Schedule(kSoftmax, "i=2048,j=256,l=256,m=256", 1, "X=f64"),
              Not(HasSubstr("UPCAST(1,0)")));
  // Nothing is read again here.
  EXPECT_EQ(Schedule(kRowMax, "i=64,j=512"), "UNROLL(0,64)");
}

// One value from far away is read from two places at once. Two operands are two places already.
TEST(HeuristicRowsTest, OneValueIsReducedInStreams) {
  constexpr const char* kSum = "s[] = sum[j](X[j])";
  EXPECT_EQ(Schedule(kSum, "j=16777216"), "GROUPTOP(0,2) UNROLL(0,0) UNROLL(0,32)");
  EXPECT_EQ(Schedule(kSum, "j=2097152"), "GROUPTOP(0,2) UNROLL(0,0) UNROLL(0,64)");
  EXPECT_EQ(Schedule(kSum, "j=1048576"), "UNROLL(0,64)");
  EXPECT_EQ(Schedule(kSum, "j=16777215"), "PADTO(0,64) GROUPTOP(0,2) UNROLL(0,0) UNROLL(0,32)");
  EXPECT_EQ(Schedule("s[] = sum[j](X[j]*Z[j])", "j=16777216").find("GROUPTOP"), std::string::npos);
  EXPECT_EQ(Schedule("s[] = sum[j](X[j]*X[j])", "j=16777216"),
            "GROUPTOP(0,2) UNROLL(0,0) UNROLL(0,32)");
}

TEST(HeuristicRowsTest, ThreadsShareALongSumThatTheyDoNotDivide) {
  EXPECT_THAT(Schedule("s[] = sum[j](X[j])", "j=1000001", 2),
              StartsWith("PADTO(0,512) GROUPTOP(0,2) THREAD(0,2)"));
  EXPECT_THAT(Schedule("s[] = sum[j](X[j])", "j=1000000", 2),
              StartsWith("GROUPTOP(0,2) THREAD(0,2)"));
  EXPECT_THAT(Schedule("s[] = sum[j](X[j])", "j=2000000", 3), StartsWith("PADTO(0,768)"));
}

// With masks, copies, streams and values kept from one loop for the next.
TEST(HeuristicRowsTest, NumbersAreThoseOfTheInterpreter) {
  for (int cores : {1, 2}) {
    std::unique_ptr<CpuDevice> device = *CpuDevice::Create(cores);
    Target target = device->target();
    target.l2_bytes = 512;  // all is far away
    for (int64_t n : {5, 40, 80, 100, 128, 197, 256, 300, 1000}) {
      for (const char* formula :
           {kSoftmax, "m[i] = max[j](X[i,j]); a[i] = min[j](where(X[i,j] == m[i], i32(j), 65535))",
            "v[i] = sum[j](X[i,j]*X[i,j]); Y[i,j] = X[i,j]/sqrt(v[i]+0.001)*g[j]",
            "s[] = sum[i,j](abs(X[i,j]))"}) {
        SCOPED_TRACE(Concat(formula, " | ", n, " | ", cores));
        const FormulaKernel k = KernelOf(
            formula,
            Concat("i=35,j=", n, formula == kSoftmax ? Concat(",l=", n, ",m=", n) : "").c_str());
        Scheduler s(*k.graph, k.sink, target);
        ApplyHeuristic(s);
        EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, *device), "")
            << ActionsToString(s.actions());
      }
    }
  }
}

}  // namespace
}  // namespace quern
