// Matrix instructions and blocks that are transposed in registers: the lowered form says the same
// as the kernel on any machine, and the code does where the CPU has the instructions.
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/lower.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/concat.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

struct Case {
  const char* formula;
  const char* sizes;
  const char* dtypes;
  const char* feature;  // "" if any CPU will do
  std::vector<const char*> schedules;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))",
       "i=12,j=64,k=20",
       "A=bf16,B=bf16",
       "avx512bf16",
       {"TC(0)", "TC(0) UPCAST(1,16)", "TC(0) UPCAST(1,32) UPCAST(0,4)",
        "TC(0) UPCAST(1,16) UPCAST(0,3) UNROLL(0,2) LOCAL(0,0)",
        "PADTO(0,8) TC(0) UPCAST(1,64) UPCAST(0,8)"}},
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
       "i=12,j=64,k=24",
       "A=u8,B=i8",
       "avx2",
       {"TC(0)", "TC(0) UPCAST(1,16)", "TC(0) UPCAST(1,32) UPCAST(0,4)",
        "TC(0) UPCAST(1,16) UPCAST(0,3) UNROLL(0,2) LOCAL(0,0)", "TC(0) UPCAST(0,4)"}},
      // Packed by groups: columns of B are interleaved, rows of B transposed in registers, with
      // what no block covers, masks of padding, an operand that is constant.
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
       "i=6,j=45,k=77",
       "A=u8,B=i8",
       "avx2",
       {"PADTO(2,4) TC(0) PADTO(1,32) UPCAST(1,32) UPCAST(0,3) LOCAL(0,0)",
        "PADTO(2,4) TC(0) PADTO(1,64) UPCAST(1,64) UPCAST(0,6)"}},
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[j,k]))",
       "i=6,j=45,k=150",
       "A=u8,B=i8",
       "avx2",
       {"PADTO(2,4) TC(0) PADTO(1,32) UPCAST(1,32) UPCAST(0,3) LOCAL(0,0)",
        "PADTO(2,4) TC(0) PADTO(1,16) UPCAST(1,16) UPCAST(0,2) LOCAL(0,0)",
        "PADTO(2,4) TC(0) PADTO(1,16) UPCAST(1,16) UPCAST(0,2) UNROLL(0,2)"}},
      {"C[i,j] = sum[k](i32(A[k,i])*i32(B[j,k]))",
       "i=28,j=64,k=64",
       "A=u8,B=i8",
       "avx2",
       {"TC(0) UPCAST(1,32) UPCAST(0,7) LOCAL(1,0) LOCAL(0,2)",
        "TC(0) UPCAST(1,32) UPCAST(0,7) LOCAL(0,0)"}},
      {"C[i,j] = sum[k](f32(A[i,k])*f32(B[j,k]))",
       "i=6,j=45,k=71",
       "A=bf16,B=bf16",
       "avx512bf16",
       {"PADTO(2,2) TC(0) PADTO(1,32) UPCAST(1,32) UPCAST(0,3) LOCAL(0,0)"}},
      // The signed operand first: the instruction wants them the other way round.
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
       "i=5,j=32,k=8",
       "A=i8,B=u8",
       "avx2",
       {"TC(0) UPCAST(1,16)", "TC(0) UPCAST(1,32)"}},
      {"Y[i,j] = X[j,i]",
       "i=32,j=64",
       "",
       "",
       {"UPCAST(0,16) UPCAST(1,16)", "UPCAST(1,8) UPCAST(0,4)", "UPCAST(1,4) UPCAST(0,16)"}},
      {"Y[i,j] = X[j,i]+Z[i,j]", "i=32,j=64", "X=f64,Z=f64", "", {"UPCAST(0,8) UPCAST(1,8)"}},
      // Packing the rows of A: a block across its rows.
      {"C[i,j] = sum[k](A[i,k]*B[k,j])",
       "i=16,j=32,k=32",
       "",
       "",
       {"UPCAST(1,16) UPCAST(0,8) LOCAL(1,0) LOCAL(0,0)", "UPCAST(1,16) UPCAST(0,4) LOCAL(1,2)"}},
  };
  return cases;
}

TEST(MatrixTest, TheLoweredFormComputesTheKernel) {
  Target target = Avx512Target();
  target.features.push_back("avx512bf16");
  target.features.push_back("avx512vnni");
  for (const Case& c : Cases()) {
    for (const char* schedule : c.schedules) {
      FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
      Scheduler s(*k.graph, k.sink, target);
      ASSERT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus()) << c.formula;
      PassOptions options;
      options.verify = true;
      absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
      ASSERT_TRUE(lowered.ok()) << lowered.status() << " " << schedule;
      const KernelBuffers expected(k.sink);
      const KernelBuffers actual(k.sink);
      ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
      ASSERT_EQ(Interpret(lowered->sink, actual.Views()), absl::OkStatus()) << schedule;
      EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "")
          << c.formula << " | " << schedule;
    }
  }
}

TEST(MatrixTest, TheCodeComputesTheKernel) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  const Target& target = (*device)->target();
  for (const Case& c : Cases()) {
    if (*c.feature != '\0' && !target.Has(c.feature)) {
      std::printf("skipped: this CPU lacks %s\n", c.feature);
      continue;
    }
    for (const char* schedule : c.schedules) {
      FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
      Scheduler s(*k.graph, k.sink, target);
      ASSERT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus()) << c.formula;
      EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, **device), "")
          << c.formula << " | " << schedule;
    }
  }
}

// Whether what is packed lies as the instruction wants it: a loop with matrix instructions that
// loads its operands, and neither interleaves nor extracts.
void ExpectPlainLoads(const char* formula, const char* dtypes, const char* schedule) {
  Target target = Avx512Target();
  target.features.push_back("avx512bf16");
  target.features.push_back("avx512vnni");
  FormulaKernel k = KernelOf(formula, "i=12,j=64,k=160", dtypes);
  Scheduler s(*k.graph, k.sink, target);
  ASSERT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus()) << formula;
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  int matrix = 0;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kMatrix) continue;
    ++matrix;
    for (const UOp* operand : u->src().subspan(1)) {
      EXPECT_EQ(operand->op, Op::kLoad) << formula << " " << schedule;
    }
  }
  EXPECT_GT(matrix, 0) << formula << " " << schedule;
}

TEST(MatrixTest, PackedGroupsAreLoadedAsTheyLie) {
  for (const char* b : {"B[k,j]", "B[j,k]"}) {
    const std::string bytes = Concat("C[i,j] = sum[k](i32(A[i,k])*i32(", b, "))");
    const std::string halves = Concat("C[i,j] = sum[k](f32(A[i,k])*f32(", b, "))");
    for (const char* schedule :
         {"TC(0) UPCAST(1,32) UPCAST(0,4) LOCAL(0,0)", "TC(0) UPCAST(1,64) UPCAST(0,3) LOCAL(0,0)",
          "TC(0) UPCAST(1,16) UPCAST(0,6) UNROLL(0,2) LOCAL(0,0)"}) {
      ExpectPlainLoads(bytes.c_str(), "A=u8,B=i8", schedule);
      ExpectPlainLoads(bytes.c_str(), "A=i8,B=u8", schedule);
      ExpectPlainLoads(halves.c_str(), "A=bf16,B=bf16", schedule);
    }
  }
  // Rows that are packed, too.
  ExpectPlainLoads("C[i,j] = sum[k](i32(A[k,i])*i32(B[j,k]))", "A=u8,B=i8",
                   "TC(0) UPCAST(1,32) UPCAST(0,3) LOCAL(1,0) LOCAL(0,2)");
}

// Rows of the transposed operand are read 64 bytes at a time, not element by element.
TEST(MatrixTest, GroupsAreTransposedByBlocks) {
  Target target = Avx512Target();
  target.features.push_back("avx512vnni");
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](i32(A[i,k])*i32(B[j,k]))", "i=12,j=64,k=160", "A=u8,B=i8");
  Scheduler s(*k.graph, k.sink, target);
  ASSERT_TRUE(s.ApplyAll(*ParseActions("TC(0) UPCAST(1,32) UPCAST(0,4) LOCAL(0,0)")).ok());
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
  ASSERT_TRUE(lowered.ok());
  int rows = 0;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op == Op::kLoad && u->dtype == DType(ScalarType::kI8).WithLanes(64)) ++rows;
  }
  EXPECT_EQ(rows, 32);
}

// Bytes of all signs, and sums that only 32 bits hold.
TEST(MatrixTest, ExtremeBytes) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  const Target& target = (*device)->target();
  if (!target.Has("avx2")) GTEST_SKIP() << "this CPU lacks avx2";
  constexpr int kDepth = 512;
  for (const char* b : {"B[k,j]", "B[j,k]"}) {
    FormulaKernel k = KernelOf(Concat("C[i,j] = sum[k](i32(A[i,k])*i32(", b, "))"),
                               Concat("i=2,j=16,k=", kDepth), "A=u8,B=i8");
    Scheduler s(*k.graph, k.sink, target);
    ASSERT_TRUE(s.ApplyAll(*ParseActions("TC(0) UPCAST(1,16) LOCAL(0,0)")).ok());
    absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, s.kernel(), target, {});
    ASSERT_TRUE(built.ok()) << built.status();
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = (*device)->Load(std::move(built->image));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const KernelBuffers buffers(k.sink);
    for (const auto [x, y] : {std::pair{255, -128}, {255, 127}, {0, -1}, {1, -1}}) {
      std::memset(buffers.data(0), x, 2 * kDepth);
      std::memset(buffers.data(1), y, 16 * kDepth);
      (*kernel)->Run(buffers.For((*kernel)->image()));
      const auto* c = static_cast<const int32_t*>(buffers.data(2));
      for (int i = 0; i < 32; ++i) ASSERT_EQ(c[i], x * y * kDepth) << b << " " << x << " " << y;
    }
  }
}

TEST(MatrixTest, GroupsThatAreNotWholeAreRefusedOrPadded) {
  Target target = Avx512Target();
  target.features.push_back("avx512vnni");
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))", "i=32,j=32,k=77", "A=u8,B=i8");
  Scheduler s(*k.graph, k.sink, target);
  EXPECT_FALSE(s.ApplyAll(*ParseActions("TC(0)")).ok());
  EXPECT_TRUE(s.ApplyAll(*ParseActions("PADTO(2,4) TC(0)")).ok());
  // The heuristic pads by itself.
  Scheduler chosen(*k.graph, k.sink, target);
  ApplyHeuristic(chosen);
  EXPECT_NE(ActionsToString(chosen.actions()).find("TC("), std::string::npos)
      << ActionsToString(chosen.actions());
}

// Lanes are chosen so that the instructions fit: 16 columns, not 9 rows.
TEST(MatrixTest, LanesFillTheRegistersOfTheInstruction) {
  ExpectPlainLoads("C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))", "A=u8,B=i8",
                   "TC(0) UPCAST(1,16) PADTO(0,9) UPCAST(0,9) LOCAL(0,0)");
  Target target = Avx512Target(1);
  target.features.push_back("avx512vnni");
  for (const char* j : {"8", "10", "24", "40"}) {
    FormulaKernel k = KernelOf("C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
                               Concat("i=64,k=128,j=", j), "A=u8,B=i8");
    Scheduler s(*k.graph, k.sink, target);
    ApplyHeuristic(s);
    absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    int matrix = 0;
    for (const UOp* u : Toposort(lowered->sink)) matrix += u->op == Op::kMatrix ? 1 : 0;
    EXPECT_GT(matrix, 0) << j << " " << ActionsToString(s.actions());
  }
}

TEST(MatrixTest, InstructionsAreUsed) {
  Target target = Avx512Target();
  target.features.push_back("avx512vnni");
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))", "i=8,j=32,k=8", "A=u8,B=i8");
  Scheduler s(*k.graph, k.sink, target);
  ASSERT_EQ(s.ApplyAll(*ParseActions("TC(0) UPCAST(1,16) UPCAST(0,4)")), absl::OkStatus());
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
  ASSERT_TRUE(lowered.ok());
  int matrix = 0;
  for (const UOp* u : Toposort(lowered->sink)) matrix += u->op == Op::kMatrix ? 1 : 0;
  EXPECT_EQ(matrix, 4);  // One a row.
}

}  // namespace
}  // namespace quern
