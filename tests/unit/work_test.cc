#include "optimizer/work.h"

#include <gtest/gtest.h>

#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

constexpr const char* kSoftmax =
    "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])";

double Cost(const FormulaKernel& k, const std::vector<Action>& actions) {
  const Target target = Avx512Target();
  Scheduler s(*k.graph, k.sink, target);
  for (const Action& a : actions) EXPECT_TRUE(s.Apply(a).ok()) << ActionToString(a);
  return EstimateWork(s.kernel()).cost;
}

// A row's sum is computed once for the row: rows twice as long cost twice as much, not four times.
TEST(WorkTest, ReductionsOfARowAreComputedOnce) {
  const double once = Cost(KernelOf(kSoftmax, "i=8,j=512,k=512"), {});
  const double twice = Cost(KernelOf(kSoftmax, "i=8,j=1024,k=1024"), {});
  EXPECT_NEAR(twice / once, 2, 0.01);
}

// Axes in registers are no loops around what does not depend on them, wherever they were cut from.
TEST(WorkTest, RegisterAxesDoNotRepeatWork) {
  const FormulaKernel k = KernelOf(kSoftmax, "i=8,j=512,k=512");
  const double plain = Cost(k, {});
  EXPECT_EQ(Cost(k, {{ActionKind::kUpcast, 1, 64}}), plain);
  EXPECT_EQ(Cost(k, {{ActionKind::kUpcast, 0, 2}}), plain);
  EXPECT_EQ(Cost(k, {{ActionKind::kUpcast, 1, 64}, {ActionKind::kUpcast, 0, 2}}), plain);
}

// A loop that stands outside another repeats it: of a product, the row of A is read once for each
// column.
TEST(WorkTest, LoopsRepeatWhatIsInsideThem) {
  EXPECT_NEAR(Cost(MatmulKernel(64, 64, 64), {}) / Cost(MatmulKernel(64, 32, 64), {}), 2, 0.05);
}

}  // namespace
}  // namespace quern
