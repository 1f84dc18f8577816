#include "optimizer/heuristic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rewrite/concat.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/linear.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/scan.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMatmul = "C[i,j] = sum[k](A[i,k]*B[k,j])";
constexpr const char* kMatmulTransposed = "C[i,j] = sum[k](A[i,k]*B[j,k])";
constexpr const char* kRowSum = "r[i] = sum[j](x[i,j])";
constexpr const char* kColumnSum = "c[j] = sum[i](x[i,j])";
constexpr const char* kElementwise = "y[i] = a[i]*b[i]+c[i]";
constexpr const char* kMatvec = "y[i] = sum[k](A[i,k]*x[k])";
constexpr const char* kSoftmax =
    "Y[i,j] = exp(X[i,j]-max[l](X[i,l]))/sum[m](exp(X[i,m]-max[l](X[i,l])))";
constexpr const char* kConvolution = "y[o,h] = sum[c,a](x[c,h+a]*w[o,c,a])";

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

// Elements in registers of the statement with the most, which an accumulator has.
int64_t RegisterElements(const FormulaKernel& k, const Target& target) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  int64_t elements = 1;
  for (const Axis& a : scheduler.axes()) {
    if (a.type == AxisType::kUpcast) elements *= a.size;
  }
  return elements;
}

TEST(HeuristicTest, StepsAreNamedAndExplained) {
  std::vector<std::string> names;
  for (const HeuristicStep& step : HeuristicSteps()) {
    names.emplace_back(step.name);
    EXPECT_FALSE(step.purpose.empty());
    EXPECT_NE(step.run, nullptr);
  }
  ASSERT_GE(names.size(), 5u);
  EXPECT_EQ(names.front(), "matrix-instructions");
  EXPECT_EQ(names.back(), "threads");
}

TEST(HeuristicTest, TheTraceCountsEveryAction) {
  FormulaKernel k = MatmulKernel(512, 512, 512);
  const Target target = Avx512Target();
  Scheduler scheduler(*k.graph, k.sink, target);
  size_t traced = 0;
  std::vector<std::string> steps;
  ApplyHeuristic(scheduler, [&](const HeuristicStep& step, size_t actions) {
    traced += actions;
    steps.emplace_back(step.name);
  });
  EXPECT_EQ(steps.size(), HeuristicSteps().size());
  EXPECT_EQ(traced, scheduler.actions().size());
  EXPECT_GT(traced, 2u);
}

// The lanes of a product's tile are two vectors, its rows what the registers leave.
TEST(HeuristicTest, ProductsGetATileThatFitsTheRegisters) {
  FormulaKernel k = MatmulKernel(960, 960, 960);
  for (const Target& target : {Avx512Target(), Avx2Target(), SseTarget()}) {
    const int64_t lanes = target.vector_bytes / 4;
    EXPECT_EQ(LargestAxis(k, target, AxisType::kUpcast) % lanes, 0) << target.name;
    const int64_t vectors = RegisterElements(k, target) / lanes;
    EXPECT_LT(vectors, target.vector_registers) << target.name;
    EXPECT_GE(vectors, target.vector_registers / 4) << target.name;
  }
  EXPECT_GT(RegisterElements(k, Avx512Target()), RegisterElements(k, Avx2Target()));
  EXPECT_GT(RegisterElements(k, Avx2Target()), RegisterElements(k, SseTarget()));
}

// Of the axes of register tiles, what the longest one was cut from tells which axis has the lanes.
std::vector<std::string> TileOf(const FormulaKernel& k, const Target& target) {
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  std::vector<std::string> tile;
  for (const Action& a : scheduler.actions()) {
    if (a.kind == ActionKind::kUpcast) tile.push_back(ActionToString(a));
  }
  return tile;
}

// Lanes follow what the inner loop reads: 14 pixels are no good lanes, 256 channels are, although
// the weights lie apart along them and the output, too.
TEST(HeuristicTest, ConvolutionsOfSmallImagesHaveLanesOverChannels) {
  const char* formula = "y[o,h,w] = sum[c,r,s](x[c,h+r,w+s]*f[o,c,r,s])";
  const Target target = Avx512Target(1);
  EXPECT_THAT(TileOf(KernelOf(formula, "o=256,h=14,w=14,c=256,r=3,s=3"), target),
              ElementsAre("UPCAST(0,32)", "UPCAST(2,14)"));
  EXPECT_THAT(TileOf(KernelOf(formula, "o=256,h=7,w=7,c=256,r=3,s=3"), target),
              ElementsAre("UPCAST(0,32)", "UPCAST(2,7)"));
}

// With few channels and long rows the pixels are the lanes.
TEST(HeuristicTest, ConvolutionsToFewChannelsHaveLanesOverPixels) {
  const char* formula = "y[o,h,w] = sum[c,r,s](x[c,h+r,w+s]*f[o,c,r,s])";
  EXPECT_EQ(TileOf(KernelOf(formula, "o=3,h=64,w=256,c=64,r=3,s=3"), Avx512Target(1)).front(),
            "UPCAST(2,32)");
}

// The operand of the rows must be read front to back: the better side of a product, however its
// sizes lie.
TEST(HeuristicTest, SkinnyProductsHaveLanesAlongTheContiguousOperand) {
  EXPECT_THAT(TileOf(MatmulKernel(128, 4096, 1024), Avx512Target(1)),
              ElementsAre("UPCAST(1,32)", "UPCAST(0,8)"));
}

// An operand of the rows that no cache keeps from one tile of columns to the next is read less
// often by wider tiles.
TEST(HeuristicTest, OperandsTooLargeForTheCacheGetWiderTiles) {
  Target target = Avx512Target(1);
  target.l2_bytes = 2 << 20;
  EXPECT_EQ(TileOf(MatmulKernel(2048, 2048, 2048), target).front(), "UPCAST(1,64)");
  EXPECT_EQ(TileOf(MatmulKernel(512, 512, 512), target).front(), "UPCAST(1,32)");
}

// Rows that lie apart are packed by blocks, also where their tiles have few divisors (93 here).
TEST(HeuristicTest, RowsThatLieApartAreAlwaysPackedByBlocks) {
  FormulaKernel k = KernelOf("C[i,j] = sum[k](A[k,i]*B[k,j])", "i=1023,j=1023,k=1023");
  const std::vector<Action> actions = Choose(k, Avx512Target(1));
  int locals = 0;
  for (const Action& a : actions) locals += a.kind == ActionKind::kLocal ? 1 : 0;
  EXPECT_EQ(locals, 2) << ActionsToString(actions);
}

// A matrix times a vector reads its operands once: lanes along the reduced axis.
// What stays in the first-level cache as it is, is not copied.
TEST(HeuristicTest, SmallProductsAreNotPacked) {
  const auto packs = [](int64_t n) {
    FormulaKernel k = MatmulKernel(n, n, n);
    return LargestAxis(k, Avx512Target(1), AxisType::kLocal) > 0;
  };
  EXPECT_FALSE(packs(64));
  EXPECT_TRUE(packs(512));
  // Apart along the lanes: always.
  FormulaKernel turned = KernelOf(kMatmulTransposed, "i=64,j=64,k=64");
  EXPECT_GT(LargestAxis(turned, Avx512Target(1), AxisType::kLocal), 0);
}

// The lanes of a product, where they lie or packed.
constexpr const char* kPixels = "Y[o,p] = sum[c](W[o,c]*X[c,p])";

TEST(HeuristicTest, LanesThatFewTilesReadAgainStayWhereTheyLie) {
  const FormulaKernel k = KernelOf(kPixels, "o=64,p=3136,c=192");
  const Target target = Avx512Target(1);
  EXPECT_EQ(LargestAxis(k, target, AxisType::kLocal), 0);
  // The tiles of rows read the same lanes one after the other.
  EXPECT_THAT(Choose(k, target), Contains(Action{ActionKind::kSwap, 0, 1}));
}

TEST(HeuristicTest, LanesThatManyTilesReadAgainArePacked) {
  const FormulaKernel k = KernelOf(kPixels, "o=1024,p=3136,c=192");
  EXPECT_GT(LargestAxis(k, Avx512Target(1), AxisType::kLocal), 0);
}

TEST(HeuristicTest, LanesOfMoreRowsThanTheCacheHoldsArePacked) {
  const FormulaKernel k = KernelOf(kPixels, "o=64,p=3136,c=4096");
  EXPECT_GT(LargestAxis(k, Avx512Target(1), AxisType::kLocal), 0);
}

// 512 rows of 16 KiB share 16 places in each way of a cache whose ways are 256 KiB.
TEST(HeuristicTest, LanesOfRowsThatShareTheirPlacesInTheCacheArePacked) {
  Target target = Avx512Target(1);
  target.l2_bytes = 4 << 20;
  EXPECT_GT(LargestAxis(KernelOf(kPixels, "o=64,p=4096,c=512"), target, AxisType::kLocal), 0);
  EXPECT_EQ(LargestAxis(KernelOf(kPixels, "o=64,p=4160,c=512"), target, AxisType::kLocal), 0);
}

// Two tiles do not pay for packing, wherever the rows lie; the second one finds in the cache what
// the first has read.
TEST(HeuristicTest, LanesThatAreNotWorthPackingAreReadByOneTileAfterTheOther) {
  const std::vector<Action> actions =
      Choose(KernelOf(kPixels, "o=16,p=4096,c=1024"), Avx512Target(1));
  EXPECT_THAT(actions, Contains(Action{ActionKind::kSwap, 0, 1}));
  EXPECT_THAT(actions, Not(Contains(testing::Field(&Action::kind, ActionKind::kLocal))));
}

// Seven tiles of lanes that lie apart would gather them; rows of the other operand that are as many
// as lanes are no lanes to be read in place.
TEST(HeuristicTest, LanesThatLieApartArePackedForAFewTilesToo) {
  const FormulaKernel k = KernelOf(kMatmul, "i=100,j=100,k=4000");
  EXPECT_GT(LargestAxis(k, Avx512Target(1), AxisType::kLocal), 0);
}

// Short sums are no reason to gather lanes, or to add those of each sum, but none to copy what lies
// side by side either.
TEST(HeuristicTest, ShortSumsArePackedWhereLanesLieApart) {
  for (const char* depth : {"8", "32", "40"}) {
    const std::string sizes = Concat("i=256,j=256,k=", depth);
    const FormulaKernel apart = KernelOf(kMatmulTransposed, sizes);
    EXPECT_GT(LargestAxis(apart, Avx512Target(1), AxisType::kLocal), 0) << sizes;
    EXPECT_LT(LargestAxis(apart, Avx512Target(1), AxisType::kUnroll), 16) << sizes;
    const FormulaKernel together = KernelOf(kMatmul, sizes);
    EXPECT_EQ(LargestAxis(together, Avx512Target(1), AxisType::kLocal), 0) << sizes;
  }
  FormulaKernel depthwise =
      KernelOf("Y[h,w,c] = sum[p,q](X[h+p,w+q,c]*W[p,q,c])", "h=14,w=14,c=512,p=3,q=3");
  depthwise.sink = MarkConstantSlot(*depthwise.graph, depthwise.sink, 2);
  EXPECT_EQ(LargestAxis(depthwise, Avx512Target(1), AxisType::kLocal), 0);
}

// Rows of a tile that fill registers are no lanes beside what is contiguous.
TEST(HeuristicTest, RowsAsManyAsLanesDoNotKeepLanesFromBeingReadInPlace) {
  const std::vector<Action> actions = Choose(KernelOf(kPixels, "o=16,p=3136,c=192"), SseTarget(1));
  EXPECT_THAT(actions, Contains(Action{ActionKind::kUpcast, 0, 4}));
  EXPECT_THAT(actions, Contains(Action{ActionKind::kSwap, 0, 1}));
}

// Some caches mind less that rows share their places, which a search can find.
TEST(HeuristicTest, ASearchMayReadLanesWhereTheyLie) {
  const FormulaKernel k = KernelOf(kPixels, "o=64,p=4096,c=1024");
  const Target target = Avx512Target(1);
  ASSERT_GT(LargestAxis(k, target, AxisType::kLocal), 0);
  Scheduler scheduler(*k.graph, k.sink, target);
  Decisions decisions({{"in-place", 1}});
  ApplyHeuristic(scheduler, decisions);
  EXPECT_THAT(scheduler.actions(), Contains(Action{ActionKind::kSwap, 0, 1}));
  EXPECT_THAT(scheduler.actions(),
              Not(Contains(testing::Field(&Action::kind, ActionKind::kLocal))));
}

// The order of the loops over tiles, without those in registers: 'i' and 'j', or 'I' where LOCAL.
std::string TileLoops(std::string_view formula, std::string_view sizes, std::string_view constant) {
  NotationOptions options;
  QUERN_CHECK(ParseSizes(sizes, options).ok());
  if (!constant.empty()) options.constants = {std::string(constant)};
  const absl::StatusOr<Program> program = ParseNotation(formula, options);
  QUERN_CHECK(program.ok());
  Target target = Avx512Target(1);
  target.l2_bytes = 2 << 20;
  Scheduler scheduler(*program->graph, program->kernels.at(0).sink, target);
  ApplyHeuristic(scheduler);
  std::string order;
  for (const Axis& a : scheduler.axes()) {
    if (a.reduce || IsRegisterAxis(a.type)) continue;
    // C[i,j]: tiles of j are neighbours in memory.
    for (const UOp* u : Toposort(scheduler.kernel())) {
      if (u->op != Op::kStore) continue;
      const bool rows = ToLinear(u->src(0)->src(1)).CoefficientOf(a.range) > 256;
      order += rows ? (a.type == AxisType::kLocal ? 'I' : 'i') : 'j';
    }
  }
  return order;
}

TEST(HeuristicTest, RowsAreReadOnceIfAllPanelsStayInTheCache) {
  EXPECT_EQ(TileLoops(kMatmul, "i=2048,j=512,k=64", ""), "ij");
  EXPECT_EQ(TileLoops(kMatmul, "i=2048,j=512,k=64", "B"), "Ij");
  EXPECT_EQ(TileLoops(kMatmulTransposed, "i=2048,j=512,k=64", ""), "Ij");
  // 4 MiB do not, whatever is added at the end.
  EXPECT_EQ(TileLoops("C[i,j] = sum[k](A[i,k]*B[k,j]) + b[j]", "i=2048,j=512,k=2048", "B"), "jI");
  EXPECT_EQ(TileLoops(kMatmul, "i=2048,j=512,k=2048", "B"), "jI");
  EXPECT_EQ(TileLoops(kMatmulTransposed, "i=2048,j=512,k=2048", ""), "jI");
}

TEST(HeuristicTest, LanesOfAConstantArePackedAhead) {
  NotationOptions options;
  QUERN_CHECK(ParseSizes("o=64,p=3136,c=192", options).ok());
  options.constants = {"X"};
  const absl::StatusOr<Program> program = ParseNotation(kPixels, options);
  ASSERT_TRUE(program.ok()) << program.status();
  const FormulaKernel constant = {program->graph, program->kernels.at(0).sink};
  EXPECT_GT(LargestAxis(constant, Avx512Target(1), AxisType::kLocal), 0);
}

TEST(HeuristicTest, TransposedTilesComeInBlocks) {
  constexpr const char* kTranspose = "Y[i,j] = X[j,i]";
  EXPECT_EQ(ActionsToString(Choose(KernelOf(kTranspose, "i=4096,j=4096"), Avx512Target(1))),
            "UPCAST(1,16) UPCAST(0,16) LOCAL(1,32) SWAP(0,1)");
  EXPECT_EQ(ActionsToString(Choose(KernelOf(kTranspose, "i=256,j=256"), Avx512Target(1))),
            "UPCAST(1,16) UPCAST(0,16)");
  // 313 tiles are not divided by anything; 320 are.
  EXPECT_EQ(ActionsToString(Choose(KernelOf(kTranspose, "i=3000,j=5008"), Avx512Target(1))),
            "PADTO(1,512) UPCAST(1,16) PADTO(0,16) UPCAST(0,16) LOCAL(1,32) SWAP(0,1)");
  // Each thread writes rows of its own.
  EXPECT_EQ(ActionsToString(Choose(KernelOf(kTranspose, "i=4096,j=4096"), Avx512Target(2))),
            "UPCAST(1,16) UPCAST(0,16) LOCAL(1,32) SWAP(0,1) THREAD(1,2)");
}

// Four beside each other, but not where the output passes through caches that do not hold it.
TEST(HeuristicTest, ScansOfSeveralRowsRunSideBySide) {
  const auto of = [](int64_t rows) {
    FormulaKernel k =
        KernelOf("Y[r,i] = sum[j](where(j <= i, X[r,j], 0))", Concat("r=", rows, ",i=1024,j=1024"));
    k.sink = RecognizeScans(*k.graph, k.sink);
    return ActionsToString(Choose(k, Avx512Target(1)));
  };
  EXPECT_EQ(of(64), "UPCAST(1,16) UPCAST(0,4)");
  EXPECT_EQ(of(4096), "UPCAST(1,32)");
  EXPECT_EQ(of(16384), "UPCAST(1,16) UPCAST(0,4)");
  // A sum at each place of a scan is a statement of its own, with the same lanes.
  FormulaKernel sums = KernelOf("Y[r,i] = sum[j](where(j <= i, sum[k](X[r,k,j]*W[k]), 0))",
                                "r=64,i=1024,j=1024,k=16");
  sums.sink = RecognizeScans(*sums.graph, sums.sink);
  EXPECT_THAT(ActionsToString(Choose(sums, Avx512Target(1))), HasSubstr("UPCAST(1,"));
  FormulaKernel one = KernelOf("Y[i] = sum[j](where(j <= i, X[j], 0))", "i=1024,j=1024");
  one.sink = RecognizeScans(*one.graph, one.sink);
  EXPECT_THAT(Choose(one, Avx512Target(1)), ElementsAre(Action{ActionKind::kUpcast, 0, 64}));
}

TEST(HeuristicTest, ElementwiseKernelsGetVectors) {
  FormulaKernel k = KernelOf(kElementwise, "i=1048576");
  for (const Target& target : {Avx512Target(), Avx2Target(), SseTarget()}) {
    const int64_t lanes = target.vector_bytes / 4;
    const int64_t upcast = LargestAxis(k, target, AxisType::kUpcast);
    EXPECT_EQ(upcast % lanes, 0) << target.name;
    EXPECT_GE(upcast, lanes) << target.name;
    EXPECT_EQ(LargestAxis(k, target, AxisType::kThread), target.cores);
  }
}

TEST(HeuristicTest, LanesFollowTheElementType) {
  const Target target = Avx512Target();
  const int64_t f32 = LargestAxis(KernelOf("y[i] = x[i]*2", "i=65536"), target, AxisType::kUpcast);
  const int64_t f64 =
      LargestAxis(KernelOf("y[i] = x[i]*2", "i=65536", "x=f64"), target, AxisType::kUpcast);
  EXPECT_EQ(f32, 2 * f64);
}

// A sum over rows reads them front to back: the loop over rows runs outside that over columns. A
// tile of sums that would not stay in cache is no reason to.
TEST(HeuristicTest, ColumnSumsStreamRows) {
  const Target target = Avx512Target(1);
  FormulaKernel few = KernelOf(kColumnSum, "i=1024,j=1024");
  Scheduler s(*few.graph, few.sink, target);
  ApplyHeuristic(s);
  EXPECT_TRUE(s.axes().at(0).reduce) << ActionsToString(s.actions());
  FormulaKernel many = KernelOf(kColumnSum, "i=128,j=4194304");
  Scheduler t(*many.graph, many.sink, target);
  ApplyHeuristic(t);
  EXPECT_FALSE(t.axes().at(0).reduce) << ActionsToString(t.actions());
}

// A few rows of A: B is read row by row, and the sums, which are few for that, come from the cache.
// Not if each would be an element of its own there.
TEST(HeuristicTest, ProductsOfAFewRowsStreamTheOtherOperand) {
  const auto streams = [](const char* formula, const char* sizes, int cores = 1) {
    const FormulaKernel k = KernelOf(formula, sizes);
    const Target target = Avx512Target(cores);
    Scheduler s(*k.graph, k.sink, target);
    ApplyHeuristic(s);
    const bool threads = s.axes().at(0).type == AxisType::kThread;
    return s.axes().at(threads ? 1 : 0).reduce;
  };
  EXPECT_TRUE(streams(kMatmul, "i=2,j=1024,k=1024"));
  EXPECT_TRUE(streams(kMatmul, "i=4,j=1000,k=1000"));
  EXPECT_FALSE(streams(kMatmul, "i=8,j=1024,k=1024"));
  constexpr const char* kColumns = "C[i,j] = sum[k](A[k,i]*B[j,k])";
  EXPECT_TRUE(streams(kColumns, "i=1024,j=2,k=1024"));
  EXPECT_FALSE(streams(kColumns, "i=1024,j=3,k=1024"));
  // Threads have a piece of each row of sums: at least a page, and whole lines of the cache.
  EXPECT_TRUE(streams(kMatmul, "i=2,j=2048,k=1024", 2));
  EXPECT_FALSE(streams(kMatmul, "i=2,j=2048,k=1024", 4));
  EXPECT_FALSE(streams(kMatmul, "i=2,j=1024,k=1024", 2));
  EXPECT_TRUE(streams(kMatmul, "i=3,j=3008,k=1000", 2));
  EXPECT_FALSE(streams(kMatmul, "i=3,j=3000,k=1000", 2));
  // A single row has one end between two pieces; what takes too short for threads has none.
  EXPECT_TRUE(streams(kColumnSum, "i=4096,j=1000", 2));
  EXPECT_TRUE(streams(kMatmul, "i=2,j=64,k=128", 2));
  EXPECT_TRUE(streams(kColumns, "i=2048,j=2,k=1024", 2));
}

// Contiguous along the reduced axis: lanes there. Contiguous along the outputs: lanes there.
TEST(HeuristicTest, SumsAreVectorisedAlongTheContiguousAxis) {
  for (const Target& target : {Avx512Target(), Avx2Target(), SseTarget()}) {
    const int64_t lanes = target.vector_bytes / 4;
    FormulaKernel rows = KernelOf(kRowSum, "i=1024,j=1024");
    EXPECT_GE(LargestAxis(rows, target, AxisType::kUnroll), lanes) << target.name;
    FormulaKernel columns = KernelOf(kColumnSum, "i=1024,j=1024");
    EXPECT_LT(LargestAxis(columns, target, AxisType::kUnroll),
              LargestAxis(columns, target, AxisType::kUpcast))
        << target.name;
    EXPECT_GE(LargestAxis(columns, target, AxisType::kUpcast), lanes) << target.name;
    FormulaKernel matvec = KernelOf(kMatvec, "i=1024,k=1024");
    EXPECT_GE(LargestAxis(matvec, target, AxisType::kUnroll), lanes) << target.name;
  }
}

TEST(HeuristicTest, ThreadsFollowTheCores) {
  FormulaKernel k = MatmulKernel(1024, 1024, 1024);
  for (int cores : {2, 4, 8}) {
    EXPECT_EQ(LargestAxis(k, Avx512Target(cores), AxisType::kThread), cores);
  }
  EXPECT_EQ(LargestAxis(k, Avx512Target(1), AxisType::kThread), 0);
  // Nor does a kernel that is done before a second thread has woken up.
  EXPECT_EQ(LargestAxis(MatmulKernel(8, 8, 8), Avx512Target(), AxisType::kThread), 0);
}

// A few microseconds are too little to share; twice as much is not. What is read from caches takes
// a tenth of the time that memory would.
TEST(HeuristicTest, ThreadsShareWhatTakesLongEnough) {
  Target target = Avx512Target(2);
  const auto threads = [&](const FormulaKernel& k) {
    return LargestAxis(k, target, AxisType::kThread);
  };
  target.llvm_cpu = "znver4";  // It takes twice as long.
  EXPECT_EQ(threads(MatmulKernel(64, 64, 64)), 2);
  EXPECT_EQ(threads(MatmulKernel(48, 48, 48)), 0);
  target.llvm_cpu = "znver5";
  EXPECT_EQ(threads(MatmulKernel(64, 64, 64)), 0);
  EXPECT_EQ(threads(MatmulKernel(96, 96, 96)), 2);
  EXPECT_EQ(threads(KernelOf(kSoftmax, "i=16,j=1024,l=1024,m=1024")), 0);
  EXPECT_EQ(threads(KernelOf(kSoftmax, "i=32,j=1024,l=1024,m=1024")), 2);
  EXPECT_EQ(threads(KernelOf("Y[i] = A[i]*B[i]+C[i]", "i=16384")), 0);
  EXPECT_EQ(threads(KernelOf("Y[i] = A[i]*B[i]+C[i]", "i=131072")), 2);
}

// A sum over everything has one output: blocks of it are what threads can share.
TEST(HeuristicTest, OneLongSumIsSharedByThreads) {
  FormulaKernel k = KernelOf("s[] = sum[i](x[i])", "i=4194304");
  const std::vector<Action> actions = Choose(k, Avx512Target());
  EXPECT_THAT(actions, Contains(Action{ActionKind::kGroupTop, 0, 4}));
  EXPECT_EQ(LargestAxis(k, Avx512Target(), AxisType::kThread), 4);
}

TEST(HeuristicTest, TheSameKernelGetsTheSameSchedule) {
  for (const char* formula : {kMatmul, kMatmulTransposed}) {
    const std::vector<Action> first = Choose(KernelOf(formula, "i=96,j=96,k=96"), Avx2Target());
    for (int run = 0; run < 3; ++run) {
      EXPECT_EQ(Choose(KernelOf(formula, "i=96,j=96,k=96"), Avx2Target()), first);
    }
  }
}

// Every schedule is legal when applied as a list, and its code computes what the kernel means: for
// sizes that vectors divide, that they do not, and that are tiny.
TEST(HeuristicTest, NumbersAreThoseOfTheInterpreter) {
  std::unique_ptr<CpuDevice> device = *CpuDevice::Create();
  struct Case {
    const char* formula;
    std::vector<const char*> sizes;
  };
  for (const Case& c : std::vector<Case>{
           {kMatmul,
            {"i=32,j=64,k=48", "i=17,j=33,k=7", "i=1,j=1,k=1", "i=3,j=130,k=65",
             "i=4,j=130,k=128"}},
           {kMatmulTransposed, {"i=32,j=32,k=64", "i=5,j=6,k=67"}},
           {kRowSum, {"i=16,j=256", "i=3,j=37", "i=1,j=1"}},
           {kColumnSum, {"i=64,j=64", "i=37,j=11"}},
           {kElementwise, {"i=1024", "i=1000", "i=7", "i=1"}},
           {kMatvec, {"i=64,k=128", "i=13,k=29"}},
           {kSoftmax, {"i=8,j=64,l=64,m=64", "i=5,j=19,l=19,m=19"}},
           {kConvolution, {"o=8,h=32,c=4,a=3", "o=3,h=17,c=2,a=5"}},
       }) {
    for (const char* sizes : c.sizes) {
      for (const Target& shape : {Avx512Target(2), Avx2Target(2), SseTarget(1)}) {
        SCOPED_TRACE(Concat(c.formula, " | ", sizes, " | ", shape.name));
        const Target target = HereWithShapeOf(shape);
        FormulaKernel k = KernelOf(c.formula, sizes);
        const std::vector<Action> actions = Choose(k, target);
        Scheduler again(*k.graph, k.sink, target);
        ASSERT_TRUE(again.ApplyAll(actions).ok());
        EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, again.kernel(), target, *device), "")
            << ActionsToString(actions) << "\n"
            << PseudoCode(again.kernel());
      }
    }
  }
}

TEST(HeuristicTest, EmptyAndScalarKernelsAreLeftAlone) {
  EXPECT_THAT(Choose(KernelOf("y[i] = x[i]+1", "i=0"), Avx512Target()), ElementsAre());
  EXPECT_THAT(Choose(KernelOf("s[] = x[]+1", ""), Avx512Target()), ElementsAre());
  EXPECT_THAT(Choose(KernelOf(kMatmul, "i=4,j=4,k=0"), Avx512Target()),
              Not(Contains(Action{ActionKind::kUnroll, 0, 0})));
}

// Where tile and registers take all loops, each core still gets a share of the tile.
TEST(HeuristicTest, ATileThatTakesTheLastLoopIsDivided) {
  FormulaKernel k = KernelOf("y[o,p] = sum[c](x[c,p]*w[o,c])", "o=2048,p=49,c=512");
  k.sink = MarkConstantSlot(*k.graph, k.sink, 1);
  for (int cores : {2, 4}) {
    EXPECT_EQ(LargestAxis(k, Avx512Target(cores), AxisType::kThread), cores);
  }
  EXPECT_EQ(LargestAxis(k, Avx512Target(1), AxisType::kThread), 0);
}

}  // namespace
}  // namespace quern
