// max and min of all pairs of special numbers, as machine code: what the interpreter gives, bit by
// bit. Constant operands take another way than variable ones.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kSpecial[16] = {0.0f, -0.0f, 1,      -1,      kInf,  -kInf,  kNaN, -kNaN,
                                2,    -2,    1e-45f, -1e-45f, 3e38f, -3e38f, 0.5f, -0.5f};

// Runs z[i,j] = value(x[i], y[j]) on all pairs, scalar and with lanes.
template <typename Value>
void ExpectLikeInterpreter(CpuDevice& device, const Value& value) {
  for (const char* schedule : {"", "UPCAST(1,16)"}) {
    UOpGraph g;
    const UOp* i = Range(g, 16, 0, AxisType::kLoop);
    const UOp* j = Range(g, 16, 1, AxisType::kLoop);
    const UOp* x = Load(g, Index(g, Param(g, kF32Type, 0, 16), i));
    const UOp* y = Load(g, Index(g, Param(g, kF32Type, 1, 16), j));
    const UOp* at = Add(g, Mul(g, i, IndexConst(g, 16)), j);
    const UOp* sink =
        Sink(g, {{Store(g, Index(g, Param(g, kF32Type, 2, 256), at), value(g, x, y))}});
    Scheduler s(g, sink, device.target());
    ASSERT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus());
    absl::StatusOr<BuiltKernel> built = BuildKernel(g, s.kernel(), device.target(), {});
    ASSERT_TRUE(built.ok()) << built.status();
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device.Load(std::move(built->image));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    float expected[256];
    float actual[256];
    float special[16];
    std::copy(std::begin(kSpecial), std::end(kSpecial), special);
    const BufferView views[] = {{0, special, 64}, {1, special, 64}, {2, expected, 1024}};
    ASSERT_EQ(Interpret(sink, views), absl::OkStatus());
    std::vector<void*> pointers;
    for (const ImageParam& p : (*kernel)->image().params) {
      pointers.push_back(p.slot == 2 ? actual : special);
    }
    (*kernel)->Run(pointers);
    for (int n = 0; n < 256; ++n) {
      if (std::isnan(expected[n])) {
        EXPECT_TRUE(std::isnan(actual[n])) << kSpecial[n / 16] << " " << kSpecial[n % 16];
        continue;
      }
      EXPECT_EQ(std::bit_cast<uint32_t>(actual[n]), std::bit_cast<uint32_t>(expected[n]))
          << kSpecial[n / 16] << " " << kSpecial[n % 16] << " gives " << actual[n] << " not "
          << expected[n] << " " << schedule;
    }
  }
}

class ExtremesTest : public testing::TestWithParam<Op> {
 protected:
  void SetUp() override { device_ = std::move(*CpuDevice::Create()); }
  std::unique_ptr<CpuDevice> device_;
};

TEST_P(ExtremesTest, OfTwoVariables) {
  ExpectLikeInterpreter(*device_, [](UOpGraph& g, const UOp* x, const UOp* y) {
    return Binary(g, GetParam(), x, y);
  });
}

TEST_P(ExtremesTest, OfAVariableAndAConstant) {
  for (const float c : kSpecial) {
    ExpectLikeInterpreter(*device_, [&](UOpGraph& g, const UOp* x, const UOp* y) {
      return Binary(g, GetParam(), Add(g, x, y), FloatConst(g, kF32Type, c));
    });
    ExpectLikeInterpreter(*device_, [&](UOpGraph& g, const UOp* x, const UOp* y) {
      return Binary(g, GetParam(), FloatConst(g, kF32Type, c), Mul(g, x, y));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExtremesTest, testing::Values(Op::kMax, Op::kMin));

}  // namespace
}  // namespace quern
