// codegen/masked_loads.h: on cores without mask registers, lanes that are off are read as zero.
#include <gtest/gtest.h>

#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// The last row of the first thread is not one of the second, so that its loads ask for the thread
// and for the lane. LLVM 22 reads whole registers in which the lanes alone say that all are off.
TEST(MaskedLoadsTest, LanesThatAreOffBesideAConditionOfAllAreZero) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  if (!(*device)->target().Has("avx2") || !(*device)->target().Has("fma")) {
    GTEST_SKIP() << "code for AVX2 does not run here";
  }
  const Target target = Avx2Target(2);
  for (const char* types : {"", "X=f64,g=f64", "X=i32,g=i32"}) {
    for (const int lanes : {8, 16, 28, 32, 64}) {
      for (const int columns : {65, 69, 71, 72, 73, 81, 95}) {
        const FormulaKernel k = KernelOf("v[i] = sum[j](X[i,j]*X[i,j]); Y[i,j] = X[i,j]*v[i]+g[j]",
                                         Concat("i=7,j=", columns), types);
        Scheduler s(*k.graph, k.sink, target);
        const auto cut = [lanes, columns](int padded, const char* action) {
          const std::string pad = Concat("PADTO(", padded, ",", lanes, ") ");
          return Concat(columns % lanes == 0 ? "" : pad, action, lanes, ") ");
        };
        const std::string actions =
            Concat(cut(2, "UNROLL(0,"), cut(1, "UPCAST(1,"), "PADTO(0,2) THREAD(0,2)");
        const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        ASSERT_EQ(s.ApplyAll(*parsed), absl::OkStatus()) << actions;
        EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, **device), "")
            << types << " " << columns << " " << actions;
      }
    }
  }
}

}  // namespace
}  // namespace quern
