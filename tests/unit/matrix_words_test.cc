// Products of small integers on CPUs without an instruction for their types: factors are widened to
// 16 bits, neighbours multiplied and added to each other by VPMADDWD.
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/lower.h"
#include "codegen/matrix_instructions.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/concat.h"
#include "tests/unit/assembly_text.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

constexpr const char* kProduct = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";
constexpr const char* kTransposed = "C[i,j] = sum[k](i32(A[i,k])*i32(B[j,k]))";
constexpr const char* kBothTransposed = "C[i,j] = sum[k](i32(A[k,i])*i32(B[j,k]))";

Target With(Target target, const std::vector<const char*>& features) {
  for (const char* f : features) target.features.push_back(f);
  return target;
}

LoweredKernel LowerWith(const FormulaKernel& k, const char* schedule, const Target& target) {
  Scheduler s(*k.graph, k.sink, target);
  EXPECT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus());
  PassOptions options;
  options.verify = true;
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status() << " " << schedule;
  return lowered.ok() ? *lowered : LoweredKernel();
}

struct Case {
  const char* formula;
  const char* sizes;
  const char* dtypes;
  std::vector<const char*> schedules;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {kProduct,
       "i=12,j=64,k=20",
       "A=u8,B=i8",
       {"TC(0)", "TC(0) UPCAST(1,8)", "TC(0) UPCAST(1,16) UPCAST(0,6)",
        "TC(0) UPCAST(1,16) UPCAST(0,3) UNROLL(0,2) LOCAL(0,0)",
        "TC(0) UPCAST(1,16) UPCAST(0,6) UNROLL(0,2) LOCAL(1,0) LOCAL(0,0)",
        "TC(0) UPCAST(1,32) UPCAST(0,4) LOCAL(1,0) LOCAL(0,3)"}},
      // Padded, with masks at all ends.
      {kProduct,
       "i=7,j=45,k=77",
       "A=i8,B=i8",
       {"PADTO(2,2) TC(0) PADTO(1,16) UPCAST(1,16) PADTO(0,6) UPCAST(0,6) LOCAL(0,0)",
        "PADTO(2,2) TC(0) PADTO(1,16) UPCAST(1,16) PADTO(0,6) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)"}},
      {kTransposed,
       "i=6,j=45,k=150",
       "A=u8,B=u8",
       {"TC(0) PADTO(1,16) UPCAST(1,16) UPCAST(0,3) LOCAL(1,0) LOCAL(0,0)",
        "TC(0) PADTO(1,16) UPCAST(1,16) UPCAST(0,3)"}},
      {kBothTransposed,
       "i=28,j=64,k=64",
       "A=u8,B=i16",
       {"TC(0) UPCAST(1,16) UPCAST(0,7) LOCAL(1,0) LOCAL(0,2)",
        "TC(0) UPCAST(1,16) UPCAST(0,7) LOCAL(0,0)"}},
      {kProduct,
       "i=12,j=32,k=30",
       "A=i16,B=i8",
       {"TC(0) UPCAST(1,16) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)"}},
      // Conversions on the way, one of which the instruction needs.
      {"C[i,j] = sum[k](i32(i16(A[i,k]))*i32(B[k,j]))",
       "i=12,j=32,k=30",
       "A=u8,B=i8",
       {"TC(0) UPCAST(1,16) UPCAST(0,6)", "TC(0) UPCAST(1,16) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)"}},
      // The buffer of a factor is read elsewhere, too, as it is.
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j])) + i32(A[i,j])",
       "i=12,j=32,k=32",
       "A=u8,B=i8",
       {"TC(0) UPCAST(1,16) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)"}},
      // Factors that are computed are widened where they are used.
      {"C[i,j] = sum[k](i32(i16(A[i,k]*100))*i32(B[k,j]))",
       "i=12,j=32,k=30",
       "B=i8",
       {"TC(0) UPCAST(1,16) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)"}},
  };
  return cases;
}

TEST(MatrixWordsTest, TheLoweredFormComputesTheKernel) {
  for (const Target& target : {Avx2Target(), With(Avx512Target(), {"avx512bw"})}) {
    for (const Case& c : Cases()) {
      for (const char* schedule : c.schedules) {
        FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
        const LoweredKernel lowered = LowerWith(k, schedule, target);
        ASSERT_NE(lowered.sink, nullptr);
        const KernelBuffers expected(k.sink);
        const KernelBuffers actual(k.sink);
        ASSERT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
        ASSERT_EQ(Interpret(lowered.sink, actual.Views()), absl::OkStatus()) << schedule;
        EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "")
            << target.name << " " << c.formula << " | " << schedule;
      }
    }
  }
}

TEST(MatrixWordsTest, TheCodeComputesTheKernel) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  if (!(*device)->target().Has("avx2")) GTEST_SKIP() << "this CPU lacks avx2";
  for (const Target& target : {(*device)->target(), HereWithShapeOf(Avx2Target())}) {
    for (const Case& c : Cases()) {
      for (const char* schedule : c.schedules) {
        FormulaKernel k = KernelOf(c.formula, c.sizes, c.dtypes);
        Scheduler s(*k.graph, k.sink, target);
        // Other instructions of this CPU may want larger groups.
        if (!s.ApplyAll(*ParseActions(schedule)).ok()) continue;
        EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, **device), "")
            << c.formula << " | " << schedule;
      }
    }
  }
}

// The instruction that sums the largest groups of what it can take.
TEST(MatrixWordsTest, TheTypesAndTheTargetChooseTheInstruction) {
  const Target avx2 = Avx2Target();
  const Target words = With(Avx512Target(), {"avx512bw"});
  const Target vnni = With(Avx512Target(), {"avx512bw", "avx512vnni"});
  const Target narrow_vnni = With(Avx2Target(), {"avxvnni"});
  const Target sse = SseTarget();
  const struct {
    const Target* target;
    const char* dtypes;
    int group;  // 0: refused
    int lanes;
  } cases[] = {
      {&avx2, "A=u8,B=i8", 2, 8},        {&avx2, "A=i8,B=i8", 2, 8},
      {&avx2, "A=u8,B=u8", 2, 8},        {&avx2, "A=i16,B=i16", 2, 8},
      {&avx2, "A=i16,B=u8", 2, 8},       {&words, "A=u8,B=i8", 2, 16},
      {&words, "A=i8,B=i8", 2, 16},      {&vnni, "A=u8,B=i8", 4, 16},
      {&vnni, "A=i8,B=u8", 4, 16},       {&vnni, "A=i8,B=i8", 2, 16},
      {&narrow_vnni, "A=i8,B=u8", 4, 8}, {&narrow_vnni, "A=u8,B=u8", 2, 8},
      {&avx2, "A=u16,B=i8", 0, 0},       {&vnni, "A=u16,B=u16", 0, 0},
      {&sse, "A=u8,B=i8", 0, 0},         {&vnni, "A=i32,B=i32", 0, 0},
  };
  for (const auto& c : cases) {
    const FormulaKernel k = KernelOf(kProduct, "i=4,j=4,k=4", c.dtypes);
    const UOp* reduce = nullptr;
    for (const UOp* u : Toposort(k.sink)) reduce = u->op == Op::kReduce ? u : reduce;
    ASSERT_NE(reduce, nullptr);
    const absl::StatusOr<MatrixFactors> f = MatchMatrixProduct(reduce->src(0), *c.target);
    ASSERT_EQ(f.ok(), c.group != 0) << c.target->name << " " << c.dtypes << " " << f.status();
    if (!f.ok()) continue;
    const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(f->instruction)];
    EXPECT_EQ(m.group, c.group) << c.target->name << " " << c.dtypes;
    EXPECT_EQ(m.lanes, c.lanes) << c.target->name << " " << c.dtypes;
  }
}

// The loop over the sum finds words that lie as the instruction wants them, and does nothing else.
TEST(MatrixWordsTest, PackedFactorsAreWidenedOnce) {
  const Target target = Avx2Target();
  for (const char* formula : {kProduct, kTransposed, kBothTransposed}) {
    const FormulaKernel k = KernelOf(formula, "i=12,j=64,k=160", "A=u8,B=i8");
    const LoweredKernel lowered =
        LowerWith(k, "TC(0) UPCAST(1,16) UPCAST(0,6) LOCAL(1,0) LOCAL(0,0)", target);
    ASSERT_NE(lowered.sink, nullptr);
    int matrix = 0;
    for (const UOp* u : Toposort(lowered.sink)) {
      if (u->op != Op::kMatrix) continue;
      ++matrix;
      for (const UOp* operand : u->src().subspan(1)) {
        EXPECT_EQ(operand->op, Op::kLoad) << formula;
        EXPECT_EQ(operand->dtype.scalar, ScalarType::kI16) << formula;
      }
    }
    EXPECT_EQ(matrix, 6) << formula;
    const std::string loop = LoopAround(Assembly(lowered, target), "vpmaddwd");
    EXPECT_EQ(Count(loop, "vpmaddwd"), 12) << loop;
    EXPECT_EQ(Count(loop, "vpaddd"), 12) << loop;
    EXPECT_EQ(Count(loop, "vpbroadcastd"), 6) << loop;
    EXPECT_EQ(Count(loop, "vpmov"), 0) << loop;
    EXPECT_EQ(Count(loop, "(%rsp)"), 0) << loop;
  }
}

// Several steps in one pass are added one after the other: the accumulators have the registers.
TEST(MatrixWordsTest, ChainsOfSumsStayInRegisters) {
  const Target target = Avx2Target();
  const FormulaKernel k = KernelOf(kProduct, "i=12,j=64,k=160", "A=u8,B=i8");
  const LoweredKernel lowered =
      LowerWith(k, "TC(0) UPCAST(1,16) UPCAST(0,6) UNROLL(0,4) LOCAL(1,0) LOCAL(0,0)", target);
  ASSERT_NE(lowered.sink, nullptr);
  const std::string loop = LoopAround(Assembly(lowered, target), "vpmaddwd");
  EXPECT_EQ(Count(loop, "vpmaddwd"), 48) << loop;
  EXPECT_EQ(Count(loop, "(%rsp)"), 0) << loop;
}

TEST(MatrixWordsTest, WiderRegistersAndOtherInstructionsAreEmitted) {
  const struct {
    Target target;
    const char* instruction;
    const char* registers;
  } cases[] = {
      {With(Avx512Target(), {"avx512bw"}), "vpmaddwd", "zmm"},
      {With(Avx512Target(), {"avx512bw", "avx512vnni"}), "vpdpbusd", "zmm"},
      {With(Avx2Target(), {"avxvnni"}), "vpdpbusd", "ymm"},
  };
  for (const auto& c : cases) {
    const FormulaKernel k = KernelOf(kProduct, "i=12,j=64,k=160", "A=u8,B=i8");
    const LoweredKernel lowered =
        LowerWith(k, "TC(0) UPCAST(1,16) UPCAST(0,4) LOCAL(1,0) LOCAL(0,0)", c.target);
    ASSERT_NE(lowered.sink, nullptr);
    const std::string loop = LoopAround(Assembly(lowered, c.target), c.instruction);
    const int registers = 16 * 4 / c.target.vector_bytes;
    EXPECT_EQ(Count(loop, c.instruction), 4 * registers) << c.target.name << loop;
    EXPECT_GT(Count(loop, c.registers), 0) << loop;
  }
}

TEST(MatrixWordsTest, ExtremeWords) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  if (!(*device)->target().Has("avx2")) GTEST_SKIP() << "this CPU lacks avx2";
  for (const Target& target : {(*device)->target(), HereWithShapeOf(Avx2Target())}) {
    FormulaKernel k = KernelOf(kProduct, "i=2,j=16,k=2", "A=i16,B=i16");
    Scheduler s(*k.graph, k.sink, target);
    ASSERT_EQ(s.ApplyAll(*ParseActions("TC(0) UPCAST(1,16)")), absl::OkStatus());
    absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, s.kernel(), target, {});
    ASSERT_TRUE(built.ok()) << built.status();
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = (*device)->Load(std::move(built->image));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const KernelBuffers buffers(k.sink);
    for (const auto [x, y] : {std::pair{32767, -32768}, {32767, 32767}, {-32768, 1}, {-1, -1}}) {
      std::fill_n(static_cast<int16_t*>(buffers.data(0)), 4, static_cast<int16_t>(x));
      std::fill_n(static_cast<int16_t*>(buffers.data(1)), 32, static_cast<int16_t>(y));
      (*kernel)->Run(buffers.For((*kernel)->image()));
      const auto* c = static_cast<const int32_t*>(buffers.data(2));
      for (int i = 0; i < 32; ++i) ASSERT_EQ(c[i], 2 * x * y) << x << " " << y;
    }
  }
}

TEST(MatrixWordsTest, TheHeuristicPacksRowsThatManyColumnsRead) {
  const Target target = Avx2Target(1);
  const auto choose = [&](const char* sizes) {
    FormulaKernel k = KernelOf(kProduct, sizes, "A=u8,B=i8");
    Scheduler s(*k.graph, k.sink, target);
    ApplyHeuristic(s);
    return ActionsToString(s.actions());
  };
  EXPECT_EQ(choose("i=1020,j=1024,k=1024"),
            "TC(0) UPCAST(1,16) UPCAST(0,6) UNROLL(0,2) LOCAL(1,0) LOCAL(0,10)");
  // One tile of columns widens each row once in any case.
  EXPECT_EQ(choose("i=1020,j=16,k=1024").find("LOCAL(1,0)"), std::string::npos)
      << choose("i=1020,j=16,k=1024");
}

}  // namespace
}  // namespace quern
