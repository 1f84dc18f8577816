// Reductions that are scans: which ones are recognised, and what becomes of them.
#include "rewrite/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "optimizer/heuristic.h"
#include "optimizer/sample_kernel.h"
#include "optimizer/scheduler.h"
#include "optimizer/work.h"
#include "rewrite/build.h"
#include "rewrite/merge_loops.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/simplify.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

int CountOps(const UOp* sink, Op op) {
  int count = 0;
  for (const UOp* u : Toposort(sink)) count += u->op == op ? 1 : 0;
  return count;
}

// The SCANs of a formula's only kernel. It must say the same with them.
int Scans(const char* formula, const char* sizes, const char* dtypes = "") {
  const FormulaKernel k = KernelOf(formula, sizes, dtypes);
  const UOp* scanned = RecognizeScans(*k.graph, k.sink);
  EXPECT_EQ(VerifyKernel(scanned), absl::OkStatus()) << formula;
  // Also after the rules have had their way with the mask.
  const UOp* simplified = Simplify(*k.graph, k.sink);
  EXPECT_EQ(CountOps(RecognizeScans(*k.graph, simplified), Op::kScan), CountOps(scanned, Op::kScan))
      << formula;
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  EXPECT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
  EXPECT_EQ(Interpret(scanned, actual.Views()), absl::OkStatus());
  EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << formula;
  return CountOps(scanned, Op::kScan);
}

TEST(RecognizeScansTest, EveryOperationDirectionAndStrictness) {
  for (const char* mask : {"j <= i", "j < i", "j >= i", "j > i", "i < j", "i >= j", "j < i+1",
                           "j-1 < i", "!(j > i)", "i-j >= 0", "j+1 > i"}) {
    const std::string sum = Concat("y[i] = sum[j](where(", mask, ", x[j], 0))");
    EXPECT_EQ(Scans(sum.c_str(), "i=7,j=7"), 1) << mask;
    const std::string other = Concat("y[i] = max[j](where(", mask, ", -inf, x[j]))");
    EXPECT_EQ(Scans(other.c_str(), "i=7,j=7"), 1) << mask;
  }
  EXPECT_EQ(Scans("y[i] = max[j](where(j <= i, x[j], -inf))", "i=9,j=9"), 1);
  EXPECT_EQ(Scans("y[i] = min[j](where(j < i, x[j], inf))", "i=9,j=9"), 1);
  EXPECT_EQ(Scans("y[i] = prod[j](where(j > i, x[j], 1))", "i=9,j=9"), 1);
  EXPECT_EQ(Scans("y[i] = max[j](where(j <= i, x[j], -2147483648))", "i=9,j=9", "x=i32"), 1);
}

TEST(RecognizeScansTest, RowsColumnsAndWhatIsSummed) {
  EXPECT_EQ(Scans("Y[r,i] = sum[j](where(j <= i, X[r,j], 0))", "r=3,i=6,j=6"), 1);
  EXPECT_EQ(Scans("Y[i,c] = sum[j](where(j <= i, X[j,c], 0))", "c=3,i=6,j=6"), 1);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j]*w[j] + 1, 0))", "i=6,j=6"), 1);
  // Other loops are summed at each place, other conditions stay.
  EXPECT_EQ(Scans("y[i] = sum[j,k](where(j <= i, X[j,k], 0))", "i=6,j=6,k=4"), 1);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i & x[j] > 0, x[j], 0))", "i=6,j=6"), 1);
  EXPECT_EQ(Scans("y[i] = sum[j](j <= i & x[j] > 0)", "i=6,j=6"), 1);
  // Conversions keep 0 and 1.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j], 0))", "i=6,j=6", "x=i8"), 1);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j], 0))", "i=6,j=6", "x=bf16"), 1);
  // A scan of a scan, and two of them side by side.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, sum[k](where(k <= j, x[k], 0)), 0))", "i=6,j=6,k=6"),
            2);
  EXPECT_EQ(
      Scans("y[i] = sum[j](where(j < i, x[j], 0)) + sum[k](where(k > i, x[k], 0))", "i=6,j=6,k=6"),
      2);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j], 0)) * max[k](where(k <= i, x[k], -inf))",
                  "i=6,j=6,k=6"),
            2);
}

TEST(RecognizeScansTest, WhatIsNoScanStays) {
  // The mask compares with something else, or in another way.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i-2, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i+1, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(2*j <= i, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j != i, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j+i <= 5, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= 3, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("Y[r,i] = sum[j](where(j <= i+r, X[r,j], 0))", "r=3,i=6,j=6"), 0);
  // The loops differ in size.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j], 0))", "i=6,j=5"), 0);
  // Where the mask is false something else counts.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j], 1))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = max[j](where(j <= i, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = prod[j](where(j <= i, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i | x[j] > 0, x[j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = max[j](where(j <= i, i32(x[j]), -128))", "i=6,j=6", "x=i8"), 0);
  // What is summed depends on the output's variable.
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, X[i,j], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i, x[j]*z[i], 0))", "i=6,j=6"), 0);
  EXPECT_EQ(Scans("y[i] = sum[j](where(j <= i & i < 4, x[j], 0))", "i=6,j=6"), 0);
  // The variable is that of another reduction.
  EXPECT_EQ(Scans("y[] = max[i](sum[j](where(j <= i, x[j], 0)))", "i=6,j=6"), 0);
}

TEST(ScanTest, TheVerifierKnowsTheOrderOfPlaces) {
  UOpGraph g;
  const UOp* outer = Range(g, 4, 0, AxisType::kLoop);
  const UOp* inner = Range(g, 3, 1, AxisType::kLoop);
  const UOp* lanes = Range(g, 2, 2, AxisType::kUpcast);
  const UOp* place =
      Add(g, Mul(g, Add(g, Mul(g, outer, IndexConst(g, 3)), inner), IndexConst(g, 2)), lanes);
  const UOp* x = Load(g, Index(g, Param(g, kF32Type, 0, 24), place));
  const UOp* y = Index(g, Param(g, kF32Type, 1, 24), place);
  const auto verify = [&](const UOp* value) {
    return VerifyKernel(Sink(g, std::vector<const UOp*>{Store(g, y, value)}));
  };
  const auto scan = [&](int64_t flags, std::vector<const UOp*> ranges) {
    return Scan(g, Op::kAdd, flags, x, ranges);
  };
  EXPECT_EQ(verify(scan(0, {outer, inner, lanes})), absl::OkStatus());
  EXPECT_EQ(verify(scan(kScanReverse, {inner})), absl::OkStatus());
  EXPECT_FALSE(verify(scan(0, {inner, outer, lanes})).ok());
  EXPECT_FALSE(verify(scan(0, {lanes, outer})).ok());
  EXPECT_FALSE(verify(scan(0, {outer, outer})).ok());
  EXPECT_FALSE(verify(scan(4, {outer})).ok());
  EXPECT_EQ(verify(Add(g, scan(0, {outer}), scan(kScanReverse, {outer}))), absl::OkStatus());
  // It would read what it has written.
  const UOp* own = Load(g, y);
  EXPECT_FALSE(verify(Scan(g, Op::kAdd, 0, own, std::vector<const UOp*>{outer})).ok());
}

TEST(ScanTest, OnePlaceIsNoSequence) {
  UOpGraph g;
  const UOp* one = Range(g, 1, 0, AxisType::kLoop);
  const UOp* x = Load(g, Index(g, Param(g, kF32Type, 0, 1), one));
  EXPECT_EQ(Simplify(g, Scan(g, Op::kAdd, 0, x, {{one}})), Simplify(g, x));
  EXPECT_EQ(Simplify(g, Scan(g, Op::kMul, kScanExclusive, x, {{one}})), FloatConst(g, kF32Type, 1));
}

TEST(ScanTest, TextAndPseudoCode) {
  const FormulaKernel k = KernelOf("y[i] = sum[j](where(j > i, x[j], 0))", "i=6,j=6");
  const UOp* scanned = RecognizeScans(*k.graph, k.sink);
  const std::string text = ToText(scanned);
  EXPECT_NE(text.find("scan.f32 op=add flags=3"), std::string::npos) << text;
  const absl::StatusOr<const UOp*> parsed = ParseText(*k.graph, text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, scanned);
  EXPECT_NE(PseudoCode(scanned).find("scan_add_after[i0](p0[i0])"), std::string::npos)
      << PseudoCode(scanned);
}

TEST(ScanTest, ActionsKeepTheSequence) {
  const Target target = Avx512Target(2);
  const auto apply = [&](const char* actions) {
    FormulaKernel k = KernelOf("Y[r,i] = sum[j](where(j <= i, X[r,j], 0))", "r=4,i=36,j=36");
    Scheduler s(*k.graph, RecognizeScans(*k.graph, MergeLoops(*k.graph, k.sink)), target);
    return s.ApplyAll(*ParseActions(actions));
  };
  EXPECT_TRUE(apply("").ok());
  EXPECT_TRUE(apply("UPCAST(1,4)").ok());
  EXPECT_TRUE(apply("UPCAST(1,4) UPCAST(1,3)").ok());
  EXPECT_TRUE(apply("PADTO(1,16) UPCAST(1,16) UPCAST(0,2)").ok());
  EXPECT_TRUE(apply("THREAD(1,2) UPCAST(2,3)").ok());
  EXPECT_TRUE(apply("LOCAL(1,6)").ok());
  EXPECT_TRUE(apply("SWAP(0,1)").ok());
  // The inner part of the sequence outside the outer one.
  EXPECT_FALSE(apply("LOCAL(1,6) SWAP(1,2)").ok());
  EXPECT_FALSE(apply("LOCAL(1,6) UPCAST(1,2)").ok());
  // It is no reduce axis.
  EXPECT_FALSE(apply("UNROLL(0,4)").ok());
  EXPECT_FALSE(apply("GROUPTOP(0,2)").ok());
}

// Whatever is done to the loops, n steps: no loop over the sequence stands inside another.
TEST(ScanTest, TheWorkIsLinear) {
  constexpr double kSize = 1 << 20;
  const Target target = Avx512Target(2);
  for (const char* formula : {"y[i] = sum[j](where(j <= i, x[j], 0))",
                              "c[i] = sum[j](where(j >= i, x[j], 0)); "
                              "y[i] = x[i]/c[i]"}) {
    const FormulaKernel k = KernelOf(formula, "i=1048576,j=1048576");
    EXPECT_EQ(CountOps(k.sink, Op::kStore), 1);
    const UOp* scanned = RecognizeScans(*k.graph, k.sink);
    EXPECT_LT(EstimateWork(scanned).cost, 20 * kSize) << formula;
    Scheduler s(*k.graph, scanned, target);
    ApplyHeuristic(s);
    absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), s.target());
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    for (const UOp* u : Toposort(lowered->sink)) {
      if (u->op == Op::kRange) EXPECT_LE(u->range_size(), kSize / 16);
    }
    EXPECT_NE(ActionsToString(s.actions()).find("THREAD"), std::string::npos)
        << ActionsToString(s.actions());
  }
}

// Phases may run part by part where threads wait for those before them only; where they wait for
// those after them, these come first.
TEST(ScanTest, PartsWaitForThoseBeforeThem) {
  const Target target = Avx512Target(2);
  const auto phases = [&](const char* formula) {
    const FormulaKernel k = KernelOf(formula, "i=64,j=64");
    Scheduler s(*k.graph, RecognizeScans(*k.graph, k.sink), target);
    QUERN_CHECK(s.ApplyAll(*ParseActions("THREAD(0,8)")).ok());
    absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
    QUERN_CHECK(lowered.ok());
    std::string flags;
    for (const KernelPhase& phase : lowered->phases) {
      EXPECT_EQ(phase.threads, 8) << formula;
      flags += phase.part_by_part ? 'p' : '-';
    }
    return std::pair(flags, PseudoCode(lowered->sink));
  };
  const auto forwards = phases("y[i] = sum[j](where(j <= i, x[j], 0))");
  EXPECT_EQ(forwards.first, "pp");
  EXPECT_NE(forwards.second.find("p0[i0 * 8"), std::string::npos) << forwards.second;
  const auto backwards = phases("y[i] = sum[j](where(j >= i, x[j], 0))");
  EXPECT_EQ(backwards.first, "pp");
  EXPECT_NE(backwards.second.find("p0[i0 * -8"), std::string::npos) << backwards.second;
  const auto both = phases("y[i] = sum[j](where(j < i, x[j], 0))*sum[j](where(j > i, x[j], 0))");
  EXPECT_EQ(both.first.find('p'), std::string::npos) << both.second;
}

// What comes from memory is cut into parts of half a cache; what caches hold into one a core.
TEST(ScanTest, PartsFitTheCache) {
  Target target = Avx512Target(2);
  const auto parts = [&](const char* formula, int64_t size) {
    const FormulaKernel k = KernelOf(formula, Concat("i=", size, ",j=", size).c_str());
    Scheduler s(*k.graph, RecognizeScans(*k.graph, k.sink), target);
    ApplyHeuristic(s);
    for (const Action& a : s.actions()) {
      if (a.kind == ActionKind::kThread) return a.amount;
    }
    return int64_t{0};
  };
  const char* sum = "y[i] = sum[j](where(j <= i, x[j], 0))";
  const int64_t large = 16 << 20;  // 64 MiB
  EXPECT_EQ(parts(sum, 1 << 20), 2);
  EXPECT_EQ(parts(sum, large), 2 * (4 * large) / target.l2_bytes);
  EXPECT_EQ(parts("y[i] = sum[j](where(j <= i, x[j]*z[j], 0))", large),
            2 * (8 * large) / target.l2_bytes);
  target.l2_bytes /= 2;
  EXPECT_EQ(parts(sum, large), 2 * (4 * large) / target.l2_bytes);
}

TEST(ScanTest, RowsGoToThreadsRatherThanTheSequence) {
  const FormulaKernel k =
      KernelOf("Y[i,c] = sum[j](where(j <= i, X[j,c], 0))", "i=4096,j=4096,c=4096");
  const Target target = Avx512Target(2);
  Scheduler s(*k.graph, RecognizeScans(*k.graph, k.sink), target);
  ApplyHeuristic(s);
  for (const UOp* u : Toposort(s.kernel())) {
    if (u->op != Op::kScan) continue;
    for (const UOp* r : u->src().subspan(1)) EXPECT_NE(r->range_type(), AxisType::kThread);
  }
  EXPECT_NE(ActionsToString(s.actions()).find("THREAD"), std::string::npos);
}

// Fusion weighs what will run, not the n² of the formula. Reading the scan at other places makes it
// none, and keeps it apart.
TEST(ScanTest, FusionCountsLinearWork) {
  const auto kernels = [](const char* formula) {
    NotationOptions options;
    QUERN_CHECK(ParseSizes("i=4096,j=4096", options).ok());
    return ParseNotation(formula, options)->kernels.size();
  };
  EXPECT_EQ(kernels("c[i] = sum[j](where(j <= i, x[j], 0)); y[i] = x[i]/c[i]"), 1u);
  EXPECT_EQ(kernels("e[i] = exp(x[i]); y[i] = sum[j](where(j <= i, e[j], 0))"), 1u);
  EXPECT_EQ(kernels("c[i] = sum[j](where(j <= i, x[j], 0)); y[i] = c[4095-i]"), 2u);
  EXPECT_EQ(kernels("c[i] = sum[j](where(j <= i, x[j], 0)); y[i] = c[(i*7)%4096]"), 2u);
  EXPECT_EQ(kernels("c[i] = sum[j](where(j < i, x[j], 0)); d[i] = sum[j](where(j > i, x[j], 0)); "
                    "y[i] = c[i]*d[i]"),
            1u);
}

TEST(ScanTest, ASampleNeedsNoOtherPlaces) {
  const FormulaKernel k = KernelOf("y[i] = sum[j](where(j <= i, x[j], 0))", "i=512,j=512");
  const UOp* scanned = RecognizeScans(*k.graph, k.sink);
  const UOp* sample = SampleKernel(*k.graph, scanned, 500);
  ASSERT_EQ(VerifyKernel(sample), absl::OkStatus());
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
  ASSERT_EQ(Interpret(sample, actual.Views()), absl::OkStatus());
  int sampled = 0;
  for (int i = 0; i < 512; ++i) {
    const float got = static_cast<const float*>(actual.data(1))[i];
    if (std::isnan(got)) continue;
    ++sampled;
    EXPECT_NEAR(got, static_cast<const float*>(expected.data(1))[i], 1e-4);
  }
  EXPECT_GE(sampled, 2);
  EXPECT_LT(sampled, 64);
}

// More threads than the device has cores, each direction, with and without workers to help.
TEST(ScanTest, PartsOnOneCoreAndOnTwo) {
  for (int cores : {1, 2}) {
    absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(cores);
    ASSERT_TRUE(device.ok());
    for (const char* formula :
         {"y[i] = sum[j](where(j <= i, x[j], 0))", "y[i] = max[j](where(j >= i, x[j], -inf))",
          "y[i] = sum[j](where(j < i, x[j], 0))*sum[j](where(j > i, x[j], 0))"}) {
      const FormulaKernel k = KernelOf(formula, "i=1200,j=1200");
      Scheduler s(*k.graph, RecognizeScans(*k.graph, k.sink), (*device)->target());
      ASSERT_TRUE(s.ApplyAll(*ParseActions("UPCAST(0,16) THREAD(0,25)")).ok());
      absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, s.kernel(), s.target(), {});
      ASSERT_TRUE(built.ok()) << built.status();
      absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = (*device)->Load(std::move(built->image));
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const KernelBuffers expected(k.sink);
      const KernelBuffers actual(k.sink);
      ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
      for (int run = 0; run < 20; ++run) (*kernel)->Run(actual.For((*kernel)->image()));
      EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << formula;
    }
  }
}

// Long enough for threads, carries and masks at the end to meet.
TEST(ScanTest, ALongSequence) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  constexpr int64_t kSize = 1000003;
  FormulaKernel k =
      KernelOf("y[i] = sum[j](where(j <= i, x[j], 0))", Concat("i=", kSize, ",j=", kSize), "x=i32");
  Scheduler s(*k.graph, RecognizeScans(*k.graph, k.sink), (*device)->target());
  ApplyHeuristic(s);
  absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, s.kernel(), s.target(), {});
  ASSERT_TRUE(built.ok()) << built.status();
  absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = (*device)->Load(std::move(built->image));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const KernelBuffers buffers(k.sink);
  (*kernel)->Run(buffers.For((*kernel)->image()));
  const auto* x = static_cast<const int32_t*>(buffers.data(0));
  const auto* y = static_cast<const int32_t*>(buffers.data(1));
  uint32_t sum = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    sum += static_cast<uint32_t>(x[i]);
    ASSERT_EQ(y[i], static_cast<int32_t>(sum)) << i;
  }
}

}  // namespace
}  // namespace quern
