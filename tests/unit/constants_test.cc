#include "tensor/constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "rewrite/kernel_flags.h"
#include "tensor/notation.h"
#include "tensor/prepare.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A product whose second operand is constant, and the plan of its heuristic schedule.
struct ConstantProduct {
  static constexpr int64_t kSize = 256;

  explicit ConstantProduct(OptStrategy strategy) {
    NotationOptions options;
    QUERN_CHECK(ParseSizes("i=256,j=256,k=256", options).ok());
    options.constants = {"B"};
    absl::StatusOr<Program> program = ParseNotation("C[i,j] = sum[k](A[i,k]*B[j,k])", options);
    QUERN_CHECK(program.ok());
    absl::StatusOr<PrepareConfig> config =
        PrepareConfig::Builder().Strategy(std::move(strategy)).Cache(false).Build();
    QUERN_CHECK(config.ok());
    absl::StatusOr<ExecutionPlan> prepared = Prepare(*program, *config);
    QUERN_CHECK(prepared.ok());
    plan.emplace(*std::move(prepared));
    for (std::vector<float>* v : {&a, &b, &c}) v->assign(kSize * kSize, 1.0f);
  }

  float FirstOutput() {
    QUERN_CHECK(plan->Run(std::vector<void*>{a.data(), b.data(), c.data()}).ok());
    return c[0];
  }
  absl::Status Pack() {
    return plan->PackConstants(std::vector<void*>{a.data(), b.data(), c.data()});
  }

  std::optional<ExecutionPlan> plan;
  std::vector<float> a, b, c;
};

// Packed in the first run; what is written to it later is seen after it is packed again.
TEST(ConstantsTest, ArePackedOnce) {
  ConstantProduct product(OptStrategy::Heuristic{});
  EXPECT_EQ(product.FirstOutput(), 256);
  std::fill(product.b.begin(), product.b.end(), 2.0f);
  EXPECT_EQ(product.FirstOutput(), 256);
  ASSERT_TRUE(product.Pack().ok());
  EXPECT_EQ(product.FirstOutput(), 512);
  // The other operand is no constant.
  std::fill(product.a.begin(), product.a.end(), 3.0f);
  EXPECT_EQ(product.FirstOutput(), 1536);
}

// A schedule that packs nothing reads constants where they are.
TEST(ConstantsTest, NeedNotBePacked) {
  ConstantProduct product(OptStrategy::NoOpt{});
  EXPECT_EQ(product.FirstOutput(), 256);
  EXPECT_TRUE(product.Pack().ok());
  EXPECT_EQ(product.FirstOutput(), 256);
}

TEST(ConstantsTest, TheFirstRunsMayBeSeveralAtOnce) {
  ConstantProduct product(OptStrategy::Heuristic{});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<float> c(product.c.size());
      std::vector<void*> buffers = {product.a.data(), product.b.data(), c.data()};
      for (int run = 0; run < 5; ++run) {
        if (!product.plan->Run(buffers).ok()) ++wrong;
        for (float x : c) wrong += x == 256 ? 0 : 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// Y = X·(W·S): the product of the two constants is made once, and packed like an input.
struct ConstantChain {
  static constexpr int64_t kSize = 64;

  explicit ConstantChain(std::vector<std::string> constants,
                         std::string_view formula =
                             "T[k,j] = sum[l](W[k,l]*S[l,j]); "
                             "Y[i,j] = sum[k](X[i,k]*T[k,j])",
                         std::string_view sizes = "i=64,j=64,k=64,l=64",
                         OptStrategy strategy = OptStrategy::Heuristic{}) {
    NotationOptions options;
    QUERN_CHECK(ParseSizes(sizes, options).ok());
    options.constants = std::move(constants);
    absl::StatusOr<Program> parsed = ParseNotation(formula, options);
    QUERN_CHECK(parsed.ok());
    program = *std::move(parsed);
    absl::StatusOr<PrepareConfig> config =
        PrepareConfig::Builder().Strategy(std::move(strategy)).Cache(false).Build();
    absl::StatusOr<ExecutionPlan> prepared = Prepare(program, *config);
    QUERN_CHECK(prepared.ok());
    plan.emplace(*std::move(prepared));
    for (const TensorInfo& t : plan->arguments()) memory[t.name].assign(kSize * kSize, 1.0f);
  }

  std::vector<void*> Buffers() {
    std::vector<void*> buffers;
    for (const TensorInfo& t : plan->arguments()) buffers.push_back(memory.at(t.name).data());
    return buffers;
  }
  void Fill(const std::string& name, float value) {
    std::fill(memory.at(name).begin(), memory.at(name).end(), value);
  }
  float FirstOutput() {
    QUERN_CHECK(plan->Run(Buffers()).ok());
    return memory.at("Y")[0];
  }

  Program program;
  std::optional<ExecutionPlan> plan;
  std::map<std::string, std::vector<float>> memory;
};

TEST(ConstantsTest, WhatIsComputedOfThemAloneIsComputedOnce) {
  ConstantChain chain({"W", "S"});
  ASSERT_THAT(chain.program.kernels, SizeIs(2));
  EXPECT_TRUE(chain.program.Find("T")->constant);
  EXPECT_TRUE(IsConstantSlot(chain.program.kernels[1].sink, chain.program.Find("T")->slot));
  EXPECT_EQ(chain.FirstOutput(), 4096);
  chain.Fill("W", 2);
  EXPECT_EQ(chain.FirstOutput(), 4096);
  chain.Fill("X", 3);
  EXPECT_EQ(chain.FirstOutput(), 3 * 4096);
  ASSERT_TRUE(chain.plan->PackConstants(chain.Buffers()).ok());
  EXPECT_EQ(chain.FirstOutput(), 6 * 4096);
}

// Nothing is packed here: what is read is the intermediate.
TEST(ConstantsTest, TheKernelsOfIntermediatesRunOnce) {
  ConstantChain chain({"W", "S"}, "T[k,j] = sum[l](W[k,l]*S[l,j]); Y[i,j] = sum[k](X[i,k]*T[k,j])",
                      "i=64,j=64,k=64,l=64", OptStrategy::NoOpt{});
  EXPECT_EQ(chain.FirstOutput(), 4096);
  chain.Fill("W", 2);
  EXPECT_EQ(chain.FirstOutput(), 4096);
  ASSERT_TRUE(chain.plan->PackConstants(chain.Buffers()).ok());
  EXPECT_EQ(chain.FirstOutput(), 2 * 4096);
}

TEST(ConstantsTest, OfOtherInputsTooItIsComputedInEachRun) {
  ConstantChain chain({"W"});
  EXPECT_FALSE(chain.program.Find("T") != nullptr && chain.program.Find("T")->constant);
  EXPECT_EQ(chain.FirstOutput(), 4096);
  chain.Fill("S", 2);
  EXPECT_EQ(chain.FirstOutput(), 2 * 4096);
}

// The caller may give each run another buffer for an output.
TEST(ConstantsTest, OutputsAreWrittenInEachRun) {
  ConstantChain chain({"W", "S"}, "Y[i,j] = sum[l](W[i,l]*S[l,j])", "i=64,j=64,l=64");
  EXPECT_EQ(chain.FirstOutput(), 64);
  chain.Fill("Y", 0);
  EXPECT_EQ(chain.FirstOutput(), 64);
}

TEST(ConstantsTest, MustBeInputs) {
  NotationOptions options;
  ASSERT_TRUE(ParseSizes("i=4", options).ok());
  options.constants = {"y"};
  EXPECT_THAT(ParseNotation("y[i] = x[i]", options).status().message(),
              HasSubstr("constant y: the formula reads no input of this name"));
  options.constants = {"z"};
  EXPECT_THAT(ParseNotation("y[i] = x[i]", options).status().message(), HasSubstr("constant z"));
}

}  // namespace
}  // namespace quern
