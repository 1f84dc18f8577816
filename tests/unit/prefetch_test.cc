// Packed operands are fetched ahead of a loop, once for each cache line that a pass reads.
#include "codegen/prefetch.h"

#include <gtest/gtest.h>

#include <map>

#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

struct Fetches {
  int loads = 0;    // of packed vectors in the sum's loop
  int fetched = 0;  // those that fetch ahead
  int64_t elements = 0;
};

// By buffer, in order of their numbers.
std::vector<Fetches> FetchesOf(const char* formula, const char* sizes, const char* dtypes,
                               const char* schedule, const Target& target) {
  FormulaKernel k = KernelOf(formula, sizes, dtypes);
  Scheduler s(*k.graph, k.sink, target);
  EXPECT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus());
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  std::map<uint32_t, Fetches> by_buffer;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kLoad || u->dtype.lanes == 1) continue;
    const UOp* buffer = u->src(0)->src(0);
    if (buffer->op != Op::kScratch) continue;
    Fetches& f = by_buffer[buffer->id];
    ++f.loads;
    f.fetched += u->arg.a != 0 ? 1 : 0;
    f.elements = std::max(f.elements, u->arg.a);
  }
  std::vector<Fetches> all;
  for (const auto& [id, f] : by_buffer) all.push_back(f);
  return all;
}

constexpr const char* kProduct = "C[i,j] = sum[k](A[i,k]*B[k,j])";

TEST(PrefetchTest, EachLineOfAStepIsFetchedOnce) {
  // Registers of a line: each is fetched. Two registers to a line: every other one.
  const char* schedule = "UPCAST(1,32) UPCAST(0,4) UNROLL(0,2) LOCAL(0,0)";
  std::vector<Fetches> wide = FetchesOf(kProduct, "i=32,j=64,k=512", "", schedule, Avx512Target());
  ASSERT_EQ(wide.size(), 1U);
  // A step reads 128 bytes; 1024 bytes ahead.
  EXPECT_EQ(wide[0].fetched, wide[0].loads);
  EXPECT_EQ(wide[0].elements, 256);
  const char* words = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";
  std::vector<Fetches> narrow =
      FetchesOf(words, "i=36,j=64,k=512", "A=u8,B=i8",
                "TC(0) UPCAST(1,16) UPCAST(0,6) UNROLL(0,4) LOCAL(1,0) LOCAL(0,0)", Avx2Target());
  ASSERT_EQ(narrow.size(), 2U);
  // Rows in groups of four bytes, 24 of them in a pass; columns in vectors of a whole line.
  const Fetches& rows = narrow[0].loads == 24 ? narrow[0] : narrow[1];
  const Fetches& columns = narrow[0].loads == 24 ? narrow[1] : narrow[0];
  EXPECT_EQ(rows.loads, 24);
  EXPECT_EQ(rows.fetched, 2);
  EXPECT_EQ(columns.loads, 4);
  EXPECT_EQ(columns.fetched, 4);
}

TEST(PrefetchTest, ShortLoopsFetchNothing) {
  std::vector<Fetches> fetches = FetchesOf(kProduct, "i=8,j=64,k=8", "",
                                           "UPCAST(1,32) UPCAST(0,4) LOCAL(0,0)", Avx512Target());
  ASSERT_EQ(fetches.size(), 1U);
  EXPECT_GT(fetches[0].loads, 0);
  EXPECT_EQ(fetches[0].fetched, 0);
}

}  // namespace
}  // namespace quern
