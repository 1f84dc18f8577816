#include "codegen/decompose_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "rewrite/build.h"
#include "rewrite/text.h"
#include "rewrite/verify_node.h"
#include "tests/unit/elementwise_evaluator.h"

namespace quern {
namespace {

using MulAdd = ElementwiseEvaluator::MulAdd;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Op kFunctions[] = {Op::kExp, Op::kExp2, Op::kLog, Op::kLog2,
                             Op::kSin, Op::kTanh, Op::kErf};

const UOp* Input(UOpGraph& g, DType type) {
  return Load(g, Index(g, Param(g, type, 0, 1), IndexConst(g, 0)));
}

// The C library has more digits in the wider type than any test here can tell apart.
template <typename Wide>
Wide Reference(Op op, Wide x) {
  switch (op) {
    case Op::kExp:
      return std::exp(x);
    case Op::kExp2:
      return std::exp2(x);
    case Op::kLog:
      return std::log(x);
    case Op::kLog2:
      return std::log2(x);
    case Op::kSin:
      return std::sin(x);
    case Op::kTanh:
      return std::tanh(x);
    default:
      return std::erf(x);
  }
}

// |got − expected| in units of the last place that `expected` has in T. Infinity counts as the
// power of two after the largest number, as in rounding.
template <typename T, typename Wide>
double UlpError(double got, Wide expected) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(expected)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isnan(got)) return kInfinity;
  const Wide limit = std::ldexp(Wide{1}, Limits::max_exponent);
  const auto clamp = [&](Wide v) { return std::fmin(std::fmax(v, -limit), limit); };
  int exponent = 0;
  std::frexp(clamp(expected), &exponent);
  exponent = std::min(std::max(exponent, Limits::min_exponent), Limits::max_exponent);
  const Wide difference = std::fabs(clamp(static_cast<Wide>(got)) - clamp(expected));
  return static_cast<double>(std::ldexp(difference, Limits::digits - exponent));
}

struct Worst {
  double error = 0;
  double at = 0;
};

// The function under test with both roundings of muladd.
template <typename T, typename Wide>
class Measured {
 public:
  Measured(Op op, DType type)
      : op_(op),
        root_(DecomposeMath(g_, Unary(g_, op, Input(g_, type)))),
        once_(root_, MulAdd::kRoundedOnce),
        twice_(root_, MulAdd::kRoundedTwice) {
    for (const UOp* u : Toposort(root_)) EXPECT_TRUE(VerifyNode(u).ok()) << VerifyNode(u);
  }

  void Try(double x) {
    const Wide expected = Reference<Wide>(op_, static_cast<Wide>(x));
    const bool far = op_ == Op::kSin && std::fabs(x) > 0x1p20 && std::isfinite(x);
    Note(once_(x), expected, x, far, worst_once_);
    Note(twice_(x), expected, x, far, worst_twice_);
  }
  // `x` and its neighbours, on both sides of zero.
  void TryAround(double x, int neighbours) {
    T low = static_cast<T>(x);
    for (int i = 0; i < neighbours; ++i)
      low = std::nextafter(low, -std::numeric_limits<T>::infinity());
    for (int i = 0; i <= 2 * neighbours; ++i) {
      Try(low);
      Try(-low);
      low = std::nextafter(low, std::numeric_limits<T>::infinity());
    }
  }

  void Report(double bound) {
    std::printf("%-5s %s  %2d operations  fused %.3f ULP at %a  unfused %.3f ULP at %a\n",
                std::string(OpName(op_)).c_str(), sizeof(T) == 4 ? "f32" : "f64",
                once_.operations(), worst_once_.error, worst_once_.at, worst_twice_.error,
                worst_twice_.at);
    EXPECT_LE(worst_once_.error, bound);
    EXPECT_LE(worst_twice_.error, bound);
  }

 private:
  void Note(double got, Wide expected, double x, bool far, Worst& worst) {
    const double error = far ? (std::fabs(got) <= 1 ? 0 : kInfinity) : UlpError<T>(got, expected);
    if (error > worst.error) worst = {error, x};
    if (op_ == Op::kSin || op_ == Op::kTanh || op_ == Op::kErf) {
      if (std::fabs(got) > 1) worst = {kInfinity, x};
    }
  }

  Op op_;
  UOpGraph g_;
  const UOp* root_;
  ElementwiseEvaluator once_;
  ElementwiseEvaluator twice_;
  Worst worst_once_;
  Worst worst_twice_;
};

// Where the formulas change or end, for either type.
constexpr double kEdges[] = {
    0.0,     0x1p-126,   0x1p-149,  0x1p-1022,   0x1p-1074,  0x1.6a09e667f3bcdp-1,
    0.5,     0.875,      1.0,       2.0,         3.95,       5.95,
    9.5,     20.0,       88.72284,  103.972,     104.0,      89.0,
    126.0,   127.0,      128.0,     149.0,       150.0,      151.0,
    709.783, 745.1332,   746.0,     710.0,       1022.0,     1023.0,
    1024.0,  1074.0,     1075.0,    1076.0,      0x1p20,     0x1p22,
    0x1p23,  kInfinity,  0x1p127,   0x1p1023,    0.34657359, 0.69314718,
    1.0397,  0.17328679, 1.5707963, 3.1415926535};

class FloatTest : public ::testing::TestWithParam<Op> {};

TEST_P(FloatTest, IsWithinTwoUlp) {
  const Op op = GetParam();
  Measured<float, double> f(op, kF32Type);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4093) {
    f.Try(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const double x : kEdges) f.TryAround(x, 200);
  // Where results are neither trivial nor extreme.
  const double range = op == Op::kErf ? 4 : op == Op::kTanh ? 10 : op == Op::kSin ? 7 : 110;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-range, range);
  for (int i = 0; i < 300000; ++i) f.Try(static_cast<float>(uniform(random)));
  if (op == Op::kSin) {
    for (int k = 1; k * M_PI < 0x1p20; k += 3) f.TryAround(k * M_PI, 1);
    for (int k = 1; k * M_PI < 0x1p20; k += 30) f.TryAround((k + 0.5) * M_PI, 1);
  }
  if (op == Op::kLog || op == Op::kLog2) f.TryAround(1, 50000);
  f.Report(2);
}
INSTANTIATE_TEST_SUITE_P(All, FloatTest, ::testing::ValuesIn(kFunctions),
                         [](const auto& p) { return std::string(OpName(p.param)); });

class DoubleTest : public ::testing::TestWithParam<Op> {};

TEST_P(DoubleTest, IsWithinFourUlp) {
  const Op op = GetParam();
  Measured<double, long double> f(op, kF64Type);
  for (uint64_t i = 0; i < 100000; ++i) {
    f.Try(std::bit_cast<double>(i * 0xa3d70a3d70a3u));
  }
  for (const double x : kEdges) f.TryAround(x, 50);
  const double range = op == Op::kErf ? 6.5 : op == Op::kTanh ? 22 : op == Op::kSin ? 7 : 760;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-range, range);
  for (int i = 0; i < 200000; ++i) f.Try(uniform(random));
  for (int i = 0; i < 50000; ++i) f.Try(uniform(random) / range);
  if (op == Op::kSin) {
    for (int k = 1; k * M_PI < 0x1p20; k += 7) f.TryAround(k * M_PI, 1);
    for (int k = 0; k * M_PI < 0x1p20; k += 70) f.TryAround((k + 0.5) * M_PI, 2);
    f.TryAround(M_PI_2, 20000);
  }
  if (op == Op::kLog || op == Op::kLog2) f.TryAround(1, 10000);
  f.Report(4);
}
INSTANTIATE_TEST_SUITE_P(All, DoubleTest, ::testing::ValuesIn(kFunctions),
                         [](const auto& p) { return std::string(OpName(p.param)); });

struct Special {
  Op op;
  double x;
  double result;
};

TEST(DecomposeMathTest, SpecialValues) {
  const Special kSpecial[] = {
      {Op::kExp, kInfinity, kInfinity},
      {Op::kExp, -kInfinity, 0},
      {Op::kExp, 0, 1},
      {Op::kExp, -0.0, 1},
      {Op::kExp2, kInfinity, kInfinity},
      {Op::kExp2, -kInfinity, 0},
      {Op::kExp2, -0.0, 1},
      {Op::kLog, 0, -kInfinity},
      {Op::kLog, -0.0, -kInfinity},
      {Op::kLog, -1, kNaN},
      {Op::kLog, -0x1p-149, kNaN},
      {Op::kLog, kInfinity, kInfinity},
      {Op::kLog, -kInfinity, kNaN},
      {Op::kLog, 1, 0},
      {Op::kLog2, 0, -kInfinity},
      {Op::kLog2, -0.0, -kInfinity},
      {Op::kLog2, -1, kNaN},
      {Op::kLog2, -0x1p-149, kNaN},
      {Op::kLog2, kInfinity, kInfinity},
      {Op::kLog2, -kInfinity, kNaN},
      {Op::kLog2, 1, 0},
      {Op::kSin, 0, 0},
      {Op::kSin, -0.0, -0.0},
      {Op::kSin, kInfinity, kNaN},
      {Op::kSin, -kInfinity, kNaN},
      {Op::kTanh, 0, 0},
      {Op::kTanh, -0.0, -0.0},
      {Op::kTanh, kInfinity, 1},
      {Op::kTanh, -kInfinity, -1},
      {Op::kErf, 0, 0},
      {Op::kErf, -0.0, -0.0},
      {Op::kErf, kInfinity, 1},
      {Op::kErf, -kInfinity, -1},
  };
  for (const DType type : {kF32Type, kF64Type}) {
    for (const MulAdd rounding : {MulAdd::kRoundedOnce, MulAdd::kRoundedTwice}) {
      UOpGraph g;
      for (const Special& s : kSpecial) {
        ElementwiseEvaluator f(DecomposeMath(g, Unary(g, s.op, Input(g, type))), rounding);
        const double got = f(s.x);
        EXPECT_TRUE(std::isnan(s.result) ? std::isnan(got) : got == s.result)
            << OpName(s.op) << " of " << s.x << " is " << got;
        // The sign of log 1 is not specified.
        if (s.result == 0 && s.x != 1) {
          EXPECT_EQ(std::signbit(got), std::signbit(s.result)) << OpName(s.op) << " of " << s.x;
        }
      }
      for (const Op op : kFunctions) {
        ElementwiseEvaluator f(DecomposeMath(g, Unary(g, op, Input(g, type))), rounding);
        EXPECT_TRUE(std::isnan(f(kNaN))) << OpName(op);
        EXPECT_TRUE(std::isnan(f(std::copysign(kNaN, -1.0)))) << OpName(op);
      }
    }
  }
}

TEST(DecomposeMathTest, PowersOfTwoAreExact) {
  for (const DType type : {kF32Type, kF64Type}) {
    for (const MulAdd rounding : {MulAdd::kRoundedOnce, MulAdd::kRoundedTwice}) {
      UOpGraph g;
      ElementwiseEvaluator exp2(DecomposeMath(g, Unary(g, Op::kExp2, Input(g, type))), rounding);
      ElementwiseEvaluator log2(DecomposeMath(g, Unary(g, Op::kLog2, Input(g, type))), rounding);
      const int low = type == kF32Type ? -149 : -1074;
      const int high = type == kF32Type ? 128 : 1024;
      for (int i = low; i < high; ++i) {
        EXPECT_EQ(exp2(i), std::ldexp(1.0, i)) << i;
        EXPECT_EQ(log2(std::ldexp(1.0, i)), i) << i;
      }
      EXPECT_EQ(exp2(high), kInfinity);
    }
  }
}

TEST(DecomposeMathTest, GraphsWithoutMathAreReturnedAsTheyAre) {
  UOpGraph g;
  const UOp* x = Input(g, kF32Type);
  const UOp* root = Unary(g, Op::kSqrt, Add(g, x, FloatConst(g, kF32Type, 1)));
  const size_t size = g.size();
  EXPECT_EQ(DecomposeMath(g, root), root);
  EXPECT_EQ(g.size(), size);
}

TEST(DecomposeMathTest, NestedAndSharedNodes) {
  UOpGraph g;
  const UOp* e = Unary(g, Op::kExp, Input(g, kF32Type));
  const UOp* root = Add(g, Unary(g, Op::kLog, e), Mul(g, e, e));
  const UOp* done = DecomposeMath(g, root);
  for (const UOp* u : Toposort(done)) {
    EXPECT_TRUE(u->op != Op::kExp && u->op != Op::kLog) << ToText(done);
  }
  ElementwiseEvaluator f(done, MulAdd::kRoundedOnce);
  EXPECT_NEAR(f(0.5), 0.5 + std::exp(1.0), 1e-6);
  EXPECT_EQ(DecomposeMath(g, done), done);
}

TEST(DecomposeMathTest, VectorsKeepTheirLanes) {
  for (const ScalarType type : {ScalarType::kF32, ScalarType::kF64}) {
    UOpGraph g;
    const UOp* x = g.Make(Op::kBroadcast, DType(type, 16), {Input(g, type)});
    for (const Op op : kFunctions) {
      const UOp* done = DecomposeMath(g, Unary(g, op, x));
      EXPECT_EQ(done->dtype, DType(type, 16));
      for (const UOp* u : Toposort(done)) EXPECT_TRUE(VerifyNode(u).ok()) << VerifyNode(u);
    }
  }
}

}  // namespace
}  // namespace quern
