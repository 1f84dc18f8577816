#include "rewrite/temporaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/sample_kernel.h"
#include "optimizer/work.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tests/unit/group_kernel.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using Nodes = std::vector<const UOp*>;

// t[i,j] = x[i,j] and y[i] = Σ_k t[…], in pieces of which the tests exchange one.
struct Chain {
  std::string read = "add.index %row, %k";
  std::string t = "scratch.f32 slot=0 size=12";
  std::string first = "store %ti, %v";
  std::string sink = "sink %a, %b";

  std::string Text() const {
    return Concat(
        "%i = range.index size=3 axis=0 type=LOOP\n%j = range.index size=4 axis=1 type=LOOP\n"
        "%k = range.index size=4 axis=2 type=REDUCE\n%four = const.index 4\n"
        "%row = mul.index %i, %four\n%at = add.index %row, %j\n%from = ",
        read, "\n%x = param.f32 slot=0 size=12\n%y = param.f32 slot=1 size=3\n%t = ", t,
        "\n%xi = index.f32 %x, %at\n%v = load.f32 %xi\n%ti = index.f32 %t, %at\n%a = ", first,
        "\n%tk = index.f32 %t, %from\n%w = load.f32 %tk\n%r = reduce.f32 op=add %w, %k\n"
        "%yi = index.f32 %y, %i\n%b = store %yi, %r\n%z = ",
        sink, "\n");
  }
};

const UOp* Parse(UOpGraph& g, const Chain& chain) {
  absl::StatusOr<const UOp*> sink = ParseText(g, chain.Text());
  EXPECT_TRUE(sink.ok()) << sink.status();
  return *sink;
}

std::string Verified(const Chain& chain) {
  UOpGraph g;
  const absl::Status status = VerifyKernel(Parse(g, chain));
  return status.ok() ? "ok" : Concat(status.message());
}

std::vector<int> SharedAxes(const UOp* sink) {
  std::vector<int> axes;
  for (const UOp* r : SharedRanges(sink)) axes.push_back(r->range_axis());
  return axes;
}

TEST(TemporariesTest, OneStoreWritesBeforeOthersRead) {
  EXPECT_EQ(Verified({}), "ok");
  EXPECT_THAT(Verified({.sink = "sink %b, %a"}),
              HasSubstr("scratch 0 (f32, 12 elements) is loaded before it is stored"));
  EXPECT_THAT(Verified({.sink = "sink %b"}), HasSubstr("is loaded before it is stored"));
  EXPECT_THAT(Verified({.first = "store %ti, %v\n%neg = neg.f32 %v\n%a2 = store %ti, %neg",
                        .sink = "sink %a, %a2, %b"}),
              HasSubstr("is stored twice"));
  EXPECT_THAT(Verified({.read = "add.index %at, %k"}), HasSubstr("not in [0, 12)"));
}

TEST(TemporariesTest, AStoreReadsWhatEarlierOnesHaveWritten) {
  UOpGraph g;
  const UOp* sink = Parse(g, {});
  std::vector<float> x(12), y(3);
  for (int i = 0; i < 12; ++i) x[i] = static_cast<float>(i);
  const std::vector<BufferView> views = {{0, x.data(), 48}, {1, y.data(), 12}};
  ASSERT_EQ(Interpret(sink, views), absl::OkStatus());
  EXPECT_THAT(y, ::testing::ElementsAre(6, 22, 38));
}

TEST(TemporariesTest, RoundTripsAsText) {
  UOpGraph g, other;
  const UOp* sink = Parse(g, {});
  absl::StatusOr<const UOp*> again = ParseText(other, ToText(sink));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->hash, sink->hash);
}

TEST(TemporariesTest, RangesAreSharedIfAllAccessesUseThemAlike) {
  UOpGraph g;
  EXPECT_THAT(SharedAxes(Parse(g, {})), ::testing::ElementsAre(0));
  // The row after: iterations depend on each other. Half a row: they do, too.
  EXPECT_THAT(SharedAxes(Parse(g, {.read = "mul.index %k, %i"})), ::testing::IsEmpty());
  EXPECT_THAT(SharedAxes(Parse(g, {.read = "add.index %i, %k"})), ::testing::IsEmpty());
  EXPECT_THAT(SharedAxes(Parse(g, {.read = "add.index %four, %k"})), ::testing::IsEmpty());
}

TEST(TemporariesTest, ThreadsMustBeShared) {
  Chain chain;
  std::string text = chain.Text();
  const auto with_thread = [&](std::string_view axis) {
    std::string t = text;
    const size_t at = t.find(Concat("axis=", axis, " type=LOOP"));
    return t.replace(at + 7, 9, "type=THREAD");
  };
  UOpGraph g;
  absl::StatusOr<const UOp*> rows = ParseText(g, with_thread("0"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(VerifyKernel(*rows), absl::OkStatus());
  absl::StatusOr<const UOp*> columns = ParseText(g, with_thread("1"));
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_THAT(std::string(VerifyKernel(*columns).message()), HasSubstr("is not shared"));
}

TEST(TemporariesTest, PaddedRowsAreAlike) {
  // i = 5·a + b below 12, in rows of 7.
  UOpGraph g;
  const UOp* a = Range(g, 3, 0, AxisType::kLoop);
  const UOp* b = Range(g, 5, 1, AxisType::kUpcast);
  const UOp* j = Range(g, 7, 2, AxisType::kLoop);
  const UOp* row = Add(g, Mul(g, a, IndexConst(g, 5)), b);
  const UOp* gate = Lt(g, row, IndexConst(g, 12));
  const UOp* offset = Add(g, Mul(g, row, IndexConst(g, 7)), j);
  const UOp* index = Index(g, Scratch(g, kF32Type, 0, 84), offset, gate);
  EXPECT_THAT(RangesUsedAlike(Nodes{index}), ::testing::UnorderedElementsAre(a, b, j));
}

// Rows of the samples only: what a row's temporaries hold is needed as a whole.
TEST(TemporariesTest, SamplesKeepRowsWhole) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=64,j=32,d=8");
  const double cost = EstimateWork(k.sink).cost;
  const UOp* sample = SampleKernel(*k.graph, k.sink, cost / 8);
  EXPECT_LT(EstimateWork(sample).cost, cost / 7);
  ASSERT_EQ(VerifyKernel(sample), absl::OkStatus());
  EXPECT_EQ(SharedRanges(sample).size(), 2u);
  const KernelBuffers whole(k.sink);
  const KernelBuffers part(k.sink);
  ASSERT_EQ(Interpret(k.sink, whole.Views()), absl::OkStatus());
  ASSERT_EQ(Interpret(sample, part.Views()), absl::OkStatus());
  const auto* want = static_cast<const float*>(whole.data(6));
  const auto* got = static_cast<const float*>(part.data(6));
  int written = 0;
  for (int i = 0; i < 2 * 64 * 8; ++i) written += got[i] == want[i] ? 1 : 0;
  EXPECT_GE(written, 2 * 64 * 8 / 8);
  EXPECT_LT(written, 2 * 64 * 8 / 2);
}

// The work of a chain is that of its statements.
TEST(TemporariesTest, WorkIsCountedOncePerStore) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=64,j=32,d=8");
  const double products = 2.0 * 2 * (2 * 64 * 32 * 8);
  EXPECT_GT(EstimateWork(k.sink).flops, products);
  EXPECT_LT(EstimateWork(k.sink).flops, 1.5 * products);
}

}  // namespace
}  // namespace quern
