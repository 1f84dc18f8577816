// Formulas that compute an expensive value in two or three loops, under random schedules: what the
// pass share-values makes of them gives what the interpreter gives, as machine code, too.
#include <gtest/gtest.h>

#include <array>

#include "optimizer/heuristic.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/random_actions.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

constexpr std::array<const char*, 8> kFormulas = {
    "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
    "Y[i,j] = exp(X[i,j])/(sum[k](exp(X[i,k])) + max[l](exp(X[i,l])))",
    "Y[i,j] = exp(X[i,j])*sin(X[i,j])/(sum[k](exp(X[i,k])) + 2.0 + sum[l](sin(X[i,l])))",
    "e[i,j] = exp(where(j <= i, X[i,j], -inf)); Y[i,j] = e[i,j]/(sum[k](e[i,k]) + 1.0)",
    "Y[i,j] = tanh(X[j,i]) - sum[k](tanh(X[k,i]))",
    "Y[i] = sum[k](exp(X[i,k]))/max[l](exp(X[i,l]))",
    "e[i,j] = exp(pad(X[i,j-1])*X[i,j]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
    "e[i,j,h] = exp(X[i,j,h]); Y[i,j,h] = e[i,j,h]/sum[k,l](e[i,k,l])",
};

bool PassFires(UOpGraph& g, const UOp* kernel, const Target& target) {
  bool fires = false;
  PassOptions options;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    fires |= pass.name == "share-values" && before != after;
  };
  return Lower(g, kernel, target, options).ok() && fires;
}

TEST(SharedValuesTest, RandomSchedules) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const Target& target = (*device)->target();
  const FuzzSeeds seeds = ReadFuzzSeeds(400);
  uint64_t fired = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    Random random(seed);
    static const std::vector<int64_t> kSizes = {1, 2, 4, 7, 8, 12, 16, 24, 32, 48};
    const int64_t rows = random.Pick(kSizes);
    const int64_t columns = random.Pick(kSizes);
    const char* formula = kFormulas[seed % kFormulas.size()];
    std::string sizes = Concat("i=", rows);
    for (const char* name : {"j", "k", "l"}) {
      if (std::string_view(formula).find(name) != std::string_view::npos) {
        Append(sizes, ",", name, "=", *name == 'l' && formula == kFormulas[7] ? 3 : columns);
      }
    }
    if (formula == kFormulas[7]) Append(sizes, ",h=3");
    const FormulaKernel k = KernelOf(formula, sizes);
    Scheduler s(*k.graph, k.sink, target);
    if (random.Chance(30)) {
      ApplyHeuristic(s);
    } else {
      ApplyRandomActions(s, random, static_cast<int>(random.Below(5)));
    }
    if (PassFires(*k.graph, s.kernel(), target)) ++fired;
    ASSERT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, **device), "")
        << "seed " << seed << " " << formula << " " << sizes << " | "
        << ActionsToString(s.actions());
  }
  if (seeds.count >= 100) EXPECT_GT(fired, seeds.count / 4);
  std::printf("%d of %d kernels shared values\n", static_cast<int>(fired),
              static_cast<int>(seeds.count));
}

}  // namespace
}  // namespace quern
