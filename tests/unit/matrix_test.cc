// Matrix instructions and blocks that are transposed in registers: the lowered form says the same
// as the kernel on any machine, and the code does where the CPU has the instructions.
#include <gtest/gtest.h>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
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
       "avx512vnni",
       {"TC(0)", "TC(0) UPCAST(1,16)", "TC(0) UPCAST(1,32) UPCAST(0,4)",
        "TC(0) UPCAST(1,16) UPCAST(0,3) UNROLL(0,2) LOCAL(0,0)", "TC(0) UPCAST(0,4)"}},
      // The signed operand first: the instruction wants them the other way round.
      {"C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
       "i=5,j=32,k=8",
       "A=i8,B=u8",
       "avx512vnni",
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
