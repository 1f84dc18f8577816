#include "codegen/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// The accumulators that a lowered kernel's loop over the reduced axis adds to, in order.
std::vector<int64_t> AddedTo(std::string_view actions) {
  const FormulaKernel k = KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=6,j=32,k=64");
  const Target target = Avx512Target(1);
  Scheduler scheduler(*k.graph, k.sink, target);
  const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
  QUERN_CHECK(parsed.ok());
  const absl::Status applied = scheduler.ApplyAll(*parsed);
  QUERN_CHECK_MSG(applied.ok(), std::string(applied.message()).c_str());
  const absl::StatusOr<LoweredKernel> lowered =
      Lower(*k.graph, scheduler.kernel(), target, PassOptions());
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  std::vector<int64_t> places;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kLoop || u->src(0)->range_type() != AxisType::kReduce) continue;
    std::vector<const UOp*> stores(u->src().begin() + 1, u->src().end());
    while (stores.size() == 1 && stores[0]->op == Op::kBlock) {
      const UOp* block = stores[0];
      stores.assign(block->src().begin(), block->src().end());
    }
    for (const UOp* store : stores) {
      const UOp* offset = store->src(0)->src(1);
      while (offset->op != Op::kConst) offset = offset->src(0);  // The place of the first lane.
      places.push_back(offset->arg.a);
    }
  }
  return places;
}

TEST(ExpandTest, EachAccumulatorOnceAStep) {
  EXPECT_THAT(AddedTo("UPCAST(1,16) UPCAST(0,3)"), ElementsAre(0, 16, 32));
}

// The steps of an unrolled loop come one after the other, each for all accumulators: no two
// neighbours wait for each other.
TEST(ExpandTest, UnrolledStepsGoAroundTheAccumulators) {
  EXPECT_THAT(AddedTo("UPCAST(1,16) UPCAST(0,3) UNROLL(0,2)"), ElementsAre(0, 16, 32, 0, 16, 32));
}

// The multiply-adds of a tile of a convolution whose ends lie outside, and how many numbers of
// loads keep them apart.
struct Work {
  int products = 0;
  std::set<int64_t> numbers;
};
Work WorkOf(std::string_view actions) {
  const FormulaKernel k =
      KernelOf("y[w,o] = sum[c,q](pad(x[c,w+q-1])*f[c,q,o])", "o=32,w=14,c=8,q=3", "", "x=8,14");
  const Target target = Avx512Target(1);
  Scheduler scheduler(*k.graph, k.sink, target);
  const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
  QUERN_CHECK(parsed.ok());
  QUERN_CHECK(scheduler.ApplyAll(*parsed).ok());
  const absl::StatusOr<LoweredKernel> lowered =
      Lower(*k.graph, scheduler.kernel(), target, PassOptions());
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  Work work;
  for (const UOp* u : Toposort(lowered->sink)) {
    work.products += u->op == Op::kMul && IsFloat(u->dtype) ? 1 : 0;
    if (u->op == Op::kLoad && u->dtype.lanes == 1) work.numbers.insert(u->arg.b);
  }
  return work;
}

TEST(ExpandTest, RowsOutsideAreNotMultiplied) {
  // Three taps of fourteen rows, and one row less for the first and for the last of them.
  EXPECT_EQ(WorkOf("UPCAST(1,32) UPCAST(0,14)").products, 3 * 14 - 2);
  EXPECT_EQ(WorkOf("UPCAST(1,32) UPCAST(0,14) UNROLL(1,3)").products, 3 * 14 - 2);
}

TEST(ExpandTest, TilesThatFillTheRegistersShareNoScalars) {
  EXPECT_THAT(WorkOf("UPCAST(1,32) UPCAST(0,14)").numbers, SizeIs(3));
  EXPECT_THAT(WorkOf("UPCAST(1,32) UPCAST(0,7)").numbers, ElementsAre(0));
}

// The additions of two sums by one output of a window of nine places that is unrolled.
int SumsOfSums(std::string_view term, std::string_view actions) {
  const FormulaKernel k =
      KernelOf(Concat("y[w,o] = sum[q](", term, ")"), "o=128,w=16,q=9", "", "x=24,128");
  const Target target = Avx512Target(1);
  Scheduler scheduler(*k.graph, k.sink, target);
  const absl::StatusOr<std::vector<Action>> parsed = ParseActions(actions);
  QUERN_CHECK(parsed.ok());
  QUERN_CHECK(scheduler.ApplyAll(*parsed).ok());
  const absl::StatusOr<LoweredKernel> lowered =
      Lower(*k.graph, scheduler.kernel(), target, PassOptions());
  QUERN_CHECK_MSG(lowered.ok(), std::string(lowered.status().message()).c_str());
  const auto is_sum = [](const UOp* u) { return u->op == Op::kAdd && IsFloat(u->dtype); };
  int count = 0;
  int outputs = 0;
  for (const UOp* u : Toposort(lowered->sink)) {
    count += is_sum(u) && is_sum(u->src(0)) && is_sum(u->src(1)) ? 1 : 0;
    outputs += u->op == Op::kStore && u->src(0)->src(0)->op == Op::kParam ? 1 : 0;
  }
  QUERN_CHECK(outputs > 0);
  return count / outputs;
}

// Each addition of a product to a sum is part of a multiply-add; one of two sums is not. Four
// vectors of outputs hide that their chains wait. Fewer have several chains each.
TEST(ExpandTest, ProductsAreAddedUpInChainsBesideEachOther) {
  constexpr const char* kProduct = "x[w+q,o]*f[q,o]";
  EXPECT_EQ(SumsOfSums(kProduct, "UPCAST(1,16) UPCAST(0,4) UNROLL(0,0)"), 0);
  EXPECT_EQ(SumsOfSums(kProduct, "UPCAST(1,64) UNROLL(0,0)"), 0);
  EXPECT_EQ(SumsOfSums(kProduct, "UPCAST(1,16) UPCAST(0,2) UNROLL(0,0)"), 1);
  EXPECT_EQ(SumsOfSums(kProduct, "UPCAST(1,16) UNROLL(0,0)"), 3);
}

// What is no product needs its additions anyway.
TEST(ExpandTest, OtherTermsAreAddedUpInATree) {
  EXPECT_EQ(SumsOfSums("x[w+q,o]", "UPCAST(1,16) UPCAST(0,4) UNROLL(0,0)"), 3);
}

}  // namespace
}  // namespace quern
