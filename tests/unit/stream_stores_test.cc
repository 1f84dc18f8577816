#include "codegen/stream_stores.h"

#include <gtest/gtest.h>

#include <vector>

#include "codegen/lower.h"
#include "optimizer/heuristic.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// Stores that go past the caches, and all stores, of what the heuristic makes of a formula.
struct Streams {
  int marked = 0;
  int all = 0;
};

Streams StreamsOf(std::string_view formula, std::string_view sizes) {
  const FormulaKernel k = KernelOf(formula, sizes);
  const Target target = Avx512Target(1);
  Scheduler scheduler(*k.graph, k.sink, target);
  ApplyHeuristic(scheduler);
  const absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, scheduler.kernel(), target, {});
  QUERN_CHECK(lowered.ok());
  Streams streams;
  for (const UOp* u : Toposort(lowered->sink)) {
    if (u->op != Op::kStore || u->src(0)->src(0)->op != Op::kParam) continue;
    ++streams.all;
    streams.marked += (u->arg.a & kStreamFlag) != 0 ? 1 : 0;
  }
  return streams;
}

TEST(StreamStoresTest, LargeOutputsOfWholeLines) {
  for (const char* formula : {"y[i,j] = a[i,j]*b[i,j]", "y[i,j] = a[j,i]"}) {
    const Streams streams = StreamsOf(formula, "i=4096,j=4096");
    EXPECT_GT(streams.marked, 0) << formula;
    EXPECT_EQ(streams.marked, streams.all) << formula;
  }
}

TEST(StreamStoresTest, WhatTheCachesHoldStaysThere) {
  EXPECT_EQ(StreamsOf("y[i,j] = a[i,j]*b[i,j]", "i=1024,j=1024").marked, 0);
}

TEST(StreamStoresTest, InPlaceOutputsAreRead) {
  EXPECT_EQ(StreamsOf("y[i,j] = y[i,j]*2", "i=4096,j=4096").marked, 0);
}

// Rows of 4097 elements begin anywhere in a line.
TEST(StreamStoresTest, RowsThatAreNoWholeLines) {
  EXPECT_EQ(StreamsOf("y[i,j] = a[i,j]+b[j]", "i=4096,j=4097").marked, 0);
}

// Nothing but its element's size is known of a caller's pointer: where it is not that of a line,
// the same kernel stores as usual.
TEST(StreamStoresTest, MisalignedOutputs) {
  constexpr int64_t kElements = int64_t{9} << 20;
  const FormulaKernel k = KernelOf("y[i] = x[i]+1", Concat("i=", kElements));
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(1);
  ASSERT_TRUE(device.ok());
  Scheduler scheduler(*k.graph, k.sink, (*device)->target());
  ApplyHeuristic(scheduler);
  const absl::StatusOr<BuiltKernel> built =
      BuildKernel(*k.graph, scheduler.kernel(), (*device)->target(), {});
  ASSERT_TRUE(built.ok()) << built.status();
  const absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = (*device)->Load(built->image);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> x(kElements), memory(kElements + 48);
  const auto past_line = reinterpret_cast<uintptr_t>(memory.data()) % 64;
  float* const y = memory.data() + (64 - past_line) % 64 / sizeof(float);
  for (int64_t i = 0; i < kElements; ++i) x[i] = static_cast<float>(i % 1000);
  const std::vector<ImageParam>& params = (*kernel)->image().params;
  ASSERT_EQ(params.size(), 2u);
  for (int64_t shift : {0, 1, 16}) {
    std::fill(memory.begin(), memory.end(), -1.0f);
    std::vector<void*> pointers;
    for (const ImageParam& p : params) {
      pointers.push_back(p.written ? static_cast<void*>(y + shift) : x.data());
    }
    (*kernel)->Run(pointers);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kElements; ++i) wrong += y[i + shift] == x[i] + 1 ? 0 : 1;
    EXPECT_EQ(wrong, 0) << shift;
    EXPECT_EQ(y[kElements + shift], -1.0f) << shift;
  }
}

}  // namespace
}  // namespace quern
