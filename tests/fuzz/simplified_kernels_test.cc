// Random kernels give the same values before and after simplification and the merging of loops, and
// what comes out are still kernels. QUERN_FUZZ_KERNELS sets how many, QUERN_FUZZ_SEED where the
// seeds begin.
#include <gtest/gtest.h>

#include "rewrite/merge_loops.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/simplify.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/guarded_memory.h"

namespace quern {
namespace {

// Calls `change(graph, sink)` on each kernel, and compares what it returns with the kernel.
template <typename Change>
void CompareChanged(const Change& change) {
  const FuzzSeeds seeds = ReadFuzzSeeds(2000);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    UOpGraph g;
    const RandomKernel kernel = KernelGenerator(g, seed).Make();
    const UOp* simplified = change(g, kernel.sink);
    const absl::Status verified = VerifyKernel(simplified);
    const std::string both =
        Concat("seed ", seed, "\n", ToText(kernel.sink), PseudoCode(kernel.sink), "--- changed:\n",
               PseudoCode(simplified));
    ASSERT_TRUE(verified.ok()) << verified << "\n" << both;
    const std::vector<GuardedMemory> expected = FilledMemory(kernel, seed, Flush::kEnd);
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, Flush::kEnd);
    ASSERT_TRUE(InterpretOn(kernel.sink, kernel, expected).ok()) << both;
    const absl::Status run = InterpretOn(simplified, kernel, actual);
    ASSERT_TRUE(run.ok()) << run << "\n" << both;
    ASSERT_EQ(CompareMemory(kernel, expected, actual), "") << both;
  }
}

TEST(SimplifiedKernelsTest, GiveTheSameValues) {
  CompareChanged([](UOpGraph& g, const UOp* sink) { return Simplify(g, sink); });
}

TEST(SimplifiedKernelsTest, MergedLoopsGiveTheSameValues) {
  int merged = 0;
  CompareChanged([&](UOpGraph& g, const UOp* sink) {
    const UOp* changed = MergeLoops(g, sink);
    merged += changed != sink ? 1 : 0;
    return changed;
  });
  if (ReadFuzzSeeds(2000).count >= 1000) EXPECT_GT(merged, 20);
}

}  // namespace
}  // namespace quern
