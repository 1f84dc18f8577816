// codegen/invariant_division.h: quotients by a reciprocal are those of the division, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

// Calls `visit(x)` for the mantissas x whose quotients by `y` (both from 2^23 to 2^24) come nearest
// to the middle between two floats: x·2^shift = middle·y + rest with a middle of 25 bits that is
// odd. The error before the last rounding is less than that of a rest of 8.
template <typename Visit>
void ForHardNumerators(uint32_t y, const Visit& visit) {
  constexpr int kMostRest = 16;
  const int zeros = std::countr_zero(y);
  if (zeros > 4) return;  // No rest is small: it is a multiple of that power of two.
  uint32_t inverse = y >> zeros;
  for (int i = 0; i < 5; ++i) inverse *= 2 - (y >> zeros) * inverse;
  for (int shift = 24; shift <= 25; ++shift) {
    const uint32_t step = 1u << (shift - zeros);
    for (int rest = -kMostRest; rest <= kMostRest; ++rest) {
      if (rest == 0 || rest % (1 << zeros) != 0) continue;
      const uint32_t first = static_cast<uint32_t>(-(rest >> zeros)) * inverse & (step - 1);
      for (uint64_t middle = first; middle < 1u << 25; middle += step) {
        if (middle < 1u << 24 || middle % 2 == 0) continue;
        const int64_t x = (static_cast<int64_t>(middle * y) + rest) >> shift;
        if (x >= 1 << 23 && x < 1 << 24) visit(static_cast<float>(x));
      }
    }
  }
}

float ByReciprocal(float x, float y, float reciprocal) {
  const float q = x * reciprocal;
  return std::fma(-std::fma(q, y, -x), reciprocal, q);
}

// With a step of 1 instead of 8, 93 million quotients, it was tried once.
TEST(InvariantDivisionTest, TheFormulaIsExactWhereItIsHardest) {
  int64_t tried = 0;
  for (uint32_t y = 1u << 23; y < 1u << 24; y += 8) {
    for (const uint32_t divisor : {y, y + 3}) {
      const auto number = static_cast<float>(divisor);
      ForHardNumerators(divisor, [&](float x) {
        ++tried;
        ASSERT_EQ(ByReciprocal(x, number, 1 / number), x / number) << x << " / " << number;
      });
    }
  }
  EXPECT_GT(tried, 10'000'000);
}

// Rows of numerators, each with its divisor, as machine code.
class Rows {
 public:
  static constexpr int kColumns = 128;

  explicit Rows(int rows) : x(static_cast<size_t>(rows) * kColumns), s(static_cast<size_t>(rows)) {}

  // Compares Y[i,j] = X[i,j]/s[i], or s[j], with the division of this compiler.
  void Check(const char* schedule, bool expect_reciprocal, bool by_column = false) {
    std::unique_ptr<CpuDevice> device = std::move(*CpuDevice::Create());
    FormulaKernel k = KernelOf(by_column ? "Y[i,j] = X[i,j]/s[j]" : "Y[i,j] = X[i,j]/s[i]",
                               Concat("i=", x.size() / kColumns, ",j=", kColumns));
    Scheduler scheduler(*k.graph, k.sink, device->target());
    ASSERT_EQ(scheduler.ApplyAll(*ParseActions(schedule)), absl::OkStatus());
    BuildOptions options;
    options.compile.verify = true;
    options.compile.keep_llvm_ir = true;
    absl::StatusOr<BuiltKernel> built =
        BuildKernel(*k.graph, scheduler.kernel(), device->target(), options);
    ASSERT_TRUE(built.ok()) << built.status();
    const auto& features = device->target().features;
    const bool fma = std::find(features.begin(), features.end(), "fma") != features.end();
    const bool reciprocal = built->llvm_ir.find("llvm.fma") != std::string::npos;
    EXPECT_EQ(reciprocal, fma && expect_reciprocal) << schedule;
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device->Load(std::move(built->image));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<float> y(x.size());
    std::vector<void*> pointers;
    for (const ImageParam& p : (*kernel)->image().params) {
      pointers.push_back(p.written ? y.data() : p.elements == std::ssize(x) ? x.data() : s.data());
    }
    (*kernel)->Run(pointers);
    for (size_t n = 0; n < x.size(); ++n) {
      const float divisor = s[by_column ? n % kColumns : n / kColumns];
      const float expected = x[n] / divisor;
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(y[n])) << x[n] << " / " << divisor;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(y[n]), std::bit_cast<uint32_t>(expected))
          << std::hexfloat << x[n] << " / " << divisor << " gives " << y[n] << " not " << expected
          << " " << schedule;
    }
  }

  std::vector<float> x;
  std::vector<float> s;
};

constexpr const char* kSchedules[] = {"UPCAST(1,16)", "UPCAST(1,64)", "UPCAST(1,32) UPCAST(0,2)",
                                      "UPCAST(1,8)"};

TEST(InvariantDivisionTest, HardQuotients) {
  std::mt19937 random(1);
  Rows rows(1000);
  for (size_t i = 0; i < rows.s.size(); ++i) {
    const uint32_t y = 1u << 23 | random() >> 9;
    const int scale = static_cast<int>(random() % 60) - 53;
    rows.s[i] = std::ldexp(static_cast<float>(y), scale);
    size_t n = i * Rows::kColumns;
    const size_t end = n + Rows::kColumns;
    ForHardNumerators(y, [&](float x) {
      const int exponent = static_cast<int>(random() % 100) - 80;
      if (n < end) rows.x[n++] = std::ldexp(random() % 2 == 0 ? x : -x, exponent);
    });
    while (n < end) rows.x[n++] = static_cast<float>(static_cast<int32_t>(random()));
  }
  for (const char* schedule : kSchedules) rows.Check(schedule, true);
}

TEST(InvariantDivisionTest, AllBitPatterns) {
  std::mt19937 random(2);
  Rows rows(2000);
  for (float& y : rows.s) y = std::bit_cast<float>(static_cast<uint32_t>(random()));
  for (float& x : rows.x) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  // Rows of zeros, of infinities, of numbers about the bounds of the short way.
  for (size_t n = 0; n < rows.x.size(); ++n) {
    const uint32_t kind = n / Rows::kColumns % 8;
    const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
    if (kind == 1) rows.x[n] = sign * 0.0f;
    if (kind == 2 && random() % 16 == 0) rows.x[n] = sign * std::numeric_limits<float>::infinity();
    if (kind == 3) rows.x[n] = sign * std::ldexp(1 + random() * 0x1p-32f, -82 + random() % 4);
    if (kind == 4) rows.x[n] = sign * std::ldexp(1 + random() * 0x1p-32f, 80 + random() % 48);
    if (kind == 5) rows.x[n] = sign * std::ldexp(1.0f, -static_cast<int>(random() % 150));
  }
  for (size_t i = 0; i < rows.s.size(); ++i) {
    const uint32_t kind = random() % 6;
    const float mantissa = 1 + random() * 0x1p-32f;
    if (kind == 0) rows.s[i] = std::ldexp(mantissa, -42 + static_cast<int>(random() % 4));
    if (kind == 1) rows.s[i] = std::ldexp(mantissa, 38 + static_cast<int>(random() % 4));
    if (kind == 2) rows.s[i] = mantissa;
    if (kind == 3) rows.s[i] = -mantissa;
    if (i % 50 == 0) rows.s[i] = std::array{0.0f, -0.0f, 1.0f, 3.0f}[random() % 4];
    if (i % 51 == 0) rows.s[i] = std::numeric_limits<float>::infinity();
  }
  for (const char* schedule : kSchedules) rows.Check(schedule, true);
}

TEST(InvariantDivisionTest, EachLaneHasADivisorOfItsOwn) {
  std::mt19937 random(3);
  Rows rows(300);
  rows.s.resize(Rows::kColumns);
  for (float& x : rows.x) x = static_cast<float>(static_cast<int32_t>(random()));
  for (float& y : rows.s) y = static_cast<float>(random());
  rows.Check("UPCAST(1,0)", true, /*by_column=*/true);
  rows.s[5] = -3;  // takes the long way, and so do its neighbours
  rows.x[77] = 0;
  rows.Check("UPCAST(1,0)", true, /*by_column=*/true);
}

TEST(InvariantDivisionTest, WhatDoesNotPayIsDivided) {
  Rows rows(4);
  std::fill(rows.x.begin(), rows.x.end(), 1.0f);
  std::fill(rows.s.begin(), rows.s.end(), 3.0f);
  rows.Check("", false);             // no vectors
  rows.Check("UPCAST(1,0)", false);  // no loop
}

TEST(InvariantDivisionTest, WithoutFusedOperationsItIsDivided) {
  for (const Target& target : {SseTarget(), Avx2Target()}) {
    FormulaKernel k = KernelOf("Y[i,j] = X[i,j]/s[i]", "i=4,j=128");
    Scheduler scheduler(*k.graph, k.sink, target);
    ASSERT_EQ(scheduler.ApplyAll(*ParseActions("UPCAST(1,16)")), absl::OkStatus());
    BuildOptions options;
    options.compile.keep_llvm_ir = true;
    absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, scheduler.kernel(), target, options);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(built->llvm_ir.find("llvm.fma") != std::string::npos, !target.features.empty());
  }
}

}  // namespace
}  // namespace quern
