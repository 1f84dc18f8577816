#include "tests/fuzz/random_kernel.h"

#include <gtest/gtest.h>

#include <map>

#include "rewrite/interpret.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"

namespace quern {
namespace {

constexpr uint64_t kKernels = 2000;

// Memory for the buffers of a kernel, filled from a seed.
std::vector<std::vector<std::byte>> Memory(const RandomKernel& kernel, uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<std::byte>> memory;
  for (const TestBuffer& b : kernel.buffers) {
    memory.emplace_back(b.bytes());
    FillRandom(b, random, kernel.fill, memory.back().data());
  }
  return memory;
}

absl::Status RunOn(const RandomKernel& kernel, const UOp* sink,
                   std::vector<std::vector<std::byte>>& memory) {
  std::vector<BufferView> views;
  for (size_t i = 0; i < memory.size(); ++i) {
    views.push_back(
        {kernel.buffers[i].slot, memory[i].data(), static_cast<int64_t>(memory[i].size())});
  }
  return Interpret(sink, views);
}

TEST(RandomKernelTest, VerifiesInterpretsAndRoundTrips) {
  std::map<std::string_view, int> ops;
  std::map<std::string, int> types;
  int reduces[4] = {};
  for (uint64_t seed = 0; seed < kKernels; ++seed) {
    UOpGraph g;
    const RandomKernel kernel = KernelGenerator(g, seed).Make();
    const absl::Status verified = VerifyKernel(kernel.sink);
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << "\n"
                               << ToText(kernel.sink) << PseudoCode(kernel.sink);
    UOpGraph other;
    const absl::StatusOr<const UOp*> parsed = ParseText(other, ToText(kernel.sink));
    ASSERT_TRUE(parsed.ok()) << "seed " << seed << ": " << parsed.status();
    ASSERT_EQ((*parsed)->hash, kernel.sink->hash) << "seed " << seed;

    std::vector<std::vector<std::byte>> memory = Memory(kernel, seed);
    std::vector<std::vector<std::byte>> again = memory;
    const absl::Status run = RunOn(kernel, kernel.sink, memory);
    ASSERT_TRUE(run.ok()) << "seed " << seed << ": " << run << "\n" << ToText(kernel.sink);
    ASSERT_TRUE(RunOn(kernel, *parsed, again).ok()) << "seed " << seed;
    for (size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(CompareBuffers(kernel.buffers[i], memory[i].data(), again[i].data()), "");
      if (!kernel.buffers[i].stored || !IsFloat(kernel.buffers[i].dtype)) continue;
      for (int64_t e = 0; kernel.fill == FloatFill::kBounded && e < kernel.buffers[i].elements;
           ++e) {
        ASSERT_TRUE(std::isfinite(ReadElement(kernel.buffers[i].dtype, memory[i].data(), e).f))
            << "seed " << seed << "\n"
            << ToText(kernel.sink);
      }
    }
    int count = 0;
    for (const UOp* u : Toposort(kernel.sink)) {
      ++ops[OpName(u->op)];
      ++types[DTypeName(u->dtype)];
      count += u->op == Op::kReduce;
    }
    ++reduces[std::min(count, 3)];
  }
  // Everything that a kernel AST can hold is made often.
  for (int o = 0; o < kOpCount; ++o) {
    const Op op = static_cast<Op>(o);
    if (!IsElementwise(op) || op == Op::kMulAdd) continue;
    EXPECT_GE(ops[OpName(op)], 10) << OpName(op);
  }
  for (int s = 0; s < kScalarTypeCount; ++s) {
    EXPECT_GE(types[DTypeName(static_cast<ScalarType>(s))], 50);
  }
  for (int n = 0; n < 4; ++n) EXPECT_GE(reduces[n], 50) << n << " reduces";
}

TEST(RandomKernelTest, SameSeedSameKernel) {
  UOpGraph g;
  EXPECT_EQ(KernelGenerator(g, 7).Make().sink, KernelGenerator(g, 7).Make().sink);
  EXPECT_NE(KernelGenerator(g, 7).Make().sink, KernelGenerator(g, 8).Make().sink);
}

// The comparison is only as good as what it refuses.
TEST(RandomKernelTest, ComparisonSeesDifferences) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  TestBuffer b{.dtype = kF32Type, .elements = 3, .tolerance = 0.25};
  const float expected[] = {1, nan, 0};
  const float near[] = {1.25, -nan, -0.0f};
  const float far[] = {1.5, 1, 0};
  EXPECT_EQ(CompareBuffers(b, expected, near), "");
  EXPECT_NE(CompareBuffers(b, expected, far).find("2 differ"), std::string::npos);
  TestBuffer i{.dtype = kI8Type, .elements = 1};
  const int8_t one = 1;
  const int8_t two = 2;
  EXPECT_EQ(CompareBuffers(i, &one, &one), "");
  EXPECT_NE(CompareBuffers(i, &one, &two), "");
}

}  // namespace
}  // namespace quern
