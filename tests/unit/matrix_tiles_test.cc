// Instructions on tiles (AMX): few machines have them, so what is tested is that the lowered form
// says what the kernel says, and the code that is made for a processor that has them.
#include "codegen/matrix_tiles.h"

#include <gtest/gtest.h>

#include "codegen/compile.h"
#include "codegen/lower.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/verify.h"
#include "rewrite/verify_node.h"
#include "runtime/tile_permission.h"
#include "tests/unit/assembly_text.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

Target AmxTarget(int cores = 1) {
  Target target = Avx512Target(cores);
  target.name = "a CPU with AMX";
  target.llvm_cpu = "sapphirerapids";
  target.features = {"amx-bf16", "amx-int8", "amx-tile", "avx",        "avx2", "avx512bf16",
                     "avx512bw", "avx512f",  "avx512vl", "avx512vnni", "fma"};
  return target;
}

constexpr const char* kHalves = "C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))";
constexpr const char* kBytes = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";

int CountOps(const UOp* sink, Op op) {
  int count = 0;
  for (const UOp* u : Toposort(sink)) count += u->op == op ? 1 : 0;
  return count;
}

// The lowered kernel under a schedule, which must compute what the formula says.
LoweredKernel LowerAndCheck(FormulaKernel& k, const char* schedule, const Target& target) {
  Scheduler s(*k.graph, k.sink, target);
  EXPECT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus()) << schedule;
  PassOptions options;
  options.verify = true;
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  EXPECT_EQ(VerifyExpanded(lowered->sink), absl::OkStatus());
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  EXPECT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
  EXPECT_EQ(Interpret(lowered->sink, actual.Views()), absl::OkStatus());
  EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << schedule;
  return *std::move(lowered);
}

struct Case {
  const char* formula;
  const char* sizes;
  const char* dtypes;
  const char* schedule;
  int tiles;  // instructions in the lowered kernel; 0: rows of vectors
};

TEST(MatrixTilesTest, TheLoweredFormComputesTheKernel) {
  const Case cases[] = {
      {kHalves, "i=32,j=48,k=64", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      {kHalves, "i=64,j=64,k=96", "A=bf16,B=bf16",
       "TC(0) UPCAST(1,16) UPCAST(1,2) UPCAST(0,16) UPCAST(0,2) LOCAL(0,0)", 4},
      {kBytes, "i=48,j=32,k=128", "A=u8,B=i8", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      // The signed factor has the rows.
      {kBytes, "i=64,j=32,k=64", "A=i8,B=u8",
       "TC(0) UPCAST(1,16) UPCAST(0,16) UPCAST(0,2) LOCAL(0,0)", 2},
      // 77 is 19 groups and a bit: one step of tiles, some of vectors, the last one masked.
      {kBytes, "i=32,j=32,k=77", "A=u8,B=i8",
       "PADTO(2,4) TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      {kHalves, "i=32,j=32,k=70", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      // Rows and columns that are padded, and what follows the product.
      {"C[i,j] = max(sum[k](f32(A[i,k])*f32(B[k,j])) + b[j], 0)", "i=29,j=30,k=64", "A=bf16,B=bf16",
       "TC(0) PADTO(1,16) UPCAST(1,16) PADTO(0,16) UPCAST(0,16) LOCAL(0,0)", 1},
      {"C[i,j] = max(sum[k](f32(A[i,k])*f32(B[k,j])) + b[j], 0)", "i=32,j=30,k=64", "A=bf16,B=bf16",
       "TC(0) PADTO(1,16) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      // B transposed, and blocks of a sum that is cut.
      {"C[i,j] = sum[k](f32(A[i,k])*f32(B[j,k]))", "i=32,j=32,k=64", "A=bf16,B=bf16",
       "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 1},
      {kHalves, "i=32,j=32,k=128", "A=bf16,B=bf16",
       "TC(0) UPCAST(1,16) UPCAST(0,16) GROUPTOP(0,2) LOCAL(0,0)", 1},
      // What does not fit: too few rows, lanes of two registers, too few steps, columns of B that
      // are not packed, rows of A that do not lie along the sum.
      {kHalves, "i=32,j=32,k=64", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,8) LOCAL(0,0)", 0},
      {kHalves, "i=32,j=32,k=64", "A=bf16,B=bf16", "TC(0) UPCAST(1,32) UPCAST(0,16) LOCAL(0,0)", 0},
      {kHalves, "i=32,j=32,k=30", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 0},
      {kHalves, "i=32,j=32,k=64", "A=bf16,B=bf16", "TC(0) UPCAST(1,16) UPCAST(0,16)", 0},
      {"C[i,j] = sum[k](f32(A[k,i])*f32(B[k,j]))", "i=32,j=32,k=64", "A=bf16,B=bf16",
       "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", 0},
  };
  for (const Case& c : cases) {
    FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
    const LoweredKernel lowered = LowerAndCheck(k, c.schedule, AmxTarget());
    EXPECT_EQ(CountOps(lowered.sink, Op::kTile), c.tiles)
        << c.formula << " " << c.sizes << " " << c.schedule << "\n"
        << PseudoCode(lowered.sink);
    if (c.tiles == 0) EXPECT_GT(CountOps(lowered.sink, Op::kMatrix), 0) << c.schedule;
  }
}

TEST(MatrixTilesTest, OtherTargetsHaveVectors) {
  Target target = AmxTarget();
  std::erase_if(target.features, [](const std::string& f) { return f == "amx-int8"; });
  FormulaKernel k = KernelOf(kBytes, "i=32,j=32,k=64", "A=u8,B=i8");
  const LoweredKernel lowered =
      LowerAndCheck(k, "TC(0) UPCAST(1,16) UPCAST(0,16) LOCAL(0,0)", target);
  EXPECT_EQ(CountOps(lowered.sink, Op::kTile), 0);
  EXPECT_GT(CountOps(lowered.sink, Op::kMatrix), 0);
}

void ExpectTileCode(const char* formula, const char* dtypes, const std::string& instruction) {
  const Target target = AmxTarget();
  FormulaKernel k = KernelOf(formula, "i=64,j=64,k=256", dtypes);
  const LoweredKernel lowered = LowerAndCheck(
      k, "TC(0) UPCAST(1,16) UPCAST(1,2) UPCAST(0,16) UPCAST(0,2) LOCAL(0,0)", target);
  const std::string text = Assembly(lowered, target);
  // Configured before the first tile, released before the function returns.
  EXPECT_GT(Count(text, "ldtilecfg"), 0) << text;
  EXPECT_LT(text.find("ldtilecfg"), text.find("tileloadd")) << text;
  EXPECT_GT(text.find("tilerelease"), text.rfind("tilestored")) << text;
  EXPECT_LT(text.find("tilerelease"), text.rfind("ret")) << text;
  EXPECT_GT(Count(text, "tilezero"), 0) << text;
  // Two by two tiles: in the loop each factor is loaded once, and the sums stay where they are.
  const std::string loop = LoopAround(text, instruction);
  EXPECT_EQ(Count(loop, instruction), 4) << loop;
  EXPECT_EQ(Count(loop, "tileloadd"), 4) << loop;
  EXPECT_EQ(Count(loop, "tilestored"), 0) << loop;
  EXPECT_EQ(Count(loop, "tilezero"), 0) << loop;
  EXPECT_EQ(Count(loop, "zmm"), 0) << loop;
  EXPECT_EQ(Count(text, "tilestored"), 4) << text;
}

TEST(MatrixTilesTest, TheCodeKeepsItsSumsInTiles) {
  ExpectTileCode(kHalves, "A=bf16,B=bf16", "tdpbf16ps");
  ExpectTileCode(kBytes, "A=u8,B=i8", "tdpbusd");
  ExpectTileCode(kBytes, "A=i8,B=u8", "tdpbsud");
}

TEST(MatrixTilesTest, TheHeuristicPrefersThem) {
  const Target amx = AmxTarget(2);
  const struct {
    const char* formula;
    const char* sizes;
    const char* dtypes;
    bool tiles;
  } cases[] = {
      {kHalves, "i=256,j=256,k=256", "A=bf16,B=bf16", true},
      {kBytes, "i=256,j=256,k=256", "A=u8,B=i8", true},
      {kBytes, "i=200,j=120,k=250", "A=u8,B=i8", true},
      {kHalves, "i=1000,j=1000,k=1000", "A=bf16,B=bf16", true},
      // Too few rows, and a vector.
      {kHalves, "i=8,j=256,k=256", "A=bf16,B=bf16", false},
      {"y[i] = sum[k](f32(A[i,k])*f32(x[k]))", "i=256,k=256", "A=bf16,x=bf16", false},
      {"C[i,j] = sum[k](A[i,k]*B[k,j])", "i=256,j=256,k=256", "", false},
  };
  for (const auto& c : cases) {
    FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
    Scheduler s(*k.graph, k.sink, amx);
    ApplyHeuristic(s);
    absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), amx);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(CountOps(lowered->sink, Op::kTile) > 0, c.tiles)
        << c.formula << " " << c.sizes << " " << ActionsToString(s.actions());
    // It is a property of the target: without the features nothing changes.
    Target without = amx;
    std::erase_if(without.features, [](const std::string& f) { return f.starts_with("amx"); });
    Scheduler other(*k.graph, k.sink, without);
    ApplyHeuristic(other);
    lowered = Lower(*k.graph, other.kernel(), without);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(CountOps(lowered->sink, Op::kTile), 0);
  }
}

TEST(MatrixTilesTest, TheVerifierKnowsTheirShapes) {
  UOpGraph g;
  const DType sums = kF32Type.WithLanes(6);
  const DType half(ScalarType::kBF16);
  const auto zeros = [&](DType t) { return FloatConst(g, t, 0); };
  const auto tile = [&](int a, int b, int64_t rows) {
    const std::vector<const UOp*> sources = {zeros(sums), zeros(half.WithLanes(a)),
                                             zeros(half.WithLanes(b))};
    return VerifyNode(Op::kTile, sums, sources, {2, rows});
  };
  EXPECT_EQ(tile(8, 12, 2), absl::OkStatus());
  EXPECT_FALSE(tile(8, 12, 3).ok());
  EXPECT_FALSE(tile(8, 8, 2).ok());
  EXPECT_FALSE(tile(7, 12, 2).ok());
  EXPECT_FALSE(tile(8, 12, 0).ok());
}

bool Granted() { return true; }
bool Refused() { return false; }
bool NeverAsked() {
  ADD_FAILURE() << "asked for tiles that are not there";
  return false;
}

TEST(TilePermissionTest, AKernelThatRefusesMakesACpuWithoutTiles) {
  const std::vector<std::string> with = {"amx-bf16", "amx-tile", "avx512f"};
  std::vector<std::string> features = with;
  DropForbiddenTiles(features, Granted);
  EXPECT_EQ(features, with);
  DropForbiddenTiles(features, Refused);
  EXPECT_EQ(features, std::vector<std::string>{"avx512f"});
  DropForbiddenTiles(features, NeverAsked);
  EXPECT_EQ(features, std::vector<std::string>{"avx512f"});
  // On this machine: whatever the answer, what was detected agrees with it.
  const Target here = DetectCpu();
  EXPECT_TRUE(!here.Has("amx-tile") || RequestTileData());
}

}  // namespace
}  // namespace quern
