// Inputs that broke programs like this one: each must give the right value without actions, under
// the heuristic, and under the actions at which others failed. An action may be refused with a
// reason; what has been applied until then must be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "tests/conformance/case_kernel.h"

namespace quern {
namespace {

using ::testing::Each;

const double kInf = std::numeric_limits<double>::infinity();

Values Ones(int64_t n) { return Values(static_cast<size_t>(n), 1); }
Values Zeros(int64_t n) { return Values(static_cast<size_t>(n), 0); }

TEST(CasesTest, Case01PaddedRowSum) {
  Kernel k;
  const UOp* i = k.Loop(4);
  const UOp* j = k.Sum(16);
  const UOp* x = k.Input(kF32Type, Ones(64));
  k.Output(Reduce(k.g, Op::kAdd, k.At(x, k.Offset({i, j}, {4, 16})), Nodes{j}), i, 4);
  ExpectEverywhere(k, {"PADTO(1,32) UNROLL(0,32)", "PADTO(1,32) UNROLL(0,0)"}, Values(4, 16));
}

TEST(CasesTest, Case02PaddedExpAndProductsAndQuotients) {
  const std::vector<std::string> actions = {"PADTO(1,32) UNROLL(0,4)", "PADTO(1,32) UNROLL(0,0)",
                                            "PADTO(1,32) GROUP(0,8)", "PADTO(0,32) UPCAST(0,8)"};
  {
    Kernel k;
    const UOp* i = k.Loop(17);
    const UOp* j = k.Sum(17);
    const UOp* x = k.At(k.Input(kF32Type, Zeros(18 * 18)), k.Offset({i, j}, {18, 18}));
    k.Output(Reduce(k.g, Op::kAdd, Unary(k.g, Op::kExp, x), Nodes{j}), i, 17);
    ExpectEverywhere(k, actions, Values(17, 17));
  }
  {
    Kernel k;
    const UOp* i = k.Loop(17);
    const UOp* j = k.Loop(17);
    const UOp* l = k.Sum(17);
    const UOp* a = k.At(k.Input(kF32Type, Ones(289)), k.Offset({i, l}, {17, 17}));
    const UOp* b = k.At(k.Input(kF32Type, Ones(289)), k.Offset({l, j}, {17, 17}));
    k.Output(Reduce(k.g, Op::kAdd, Mul(k.g, a, b), Nodes{l}), k.Offset({i, j}, {17, 17}), 289);
    ExpectEverywhere(
        k, {"PADTO(2,32) UNROLL(0,8)", "PADTO(1,32) PADTO(2,32) UPCAST(1,32) UNROLL(0,4)"},
        Values(289, 17));
  }
  {
    Kernel k;
    const UOp* i = k.Loop(17);
    const UOp* j = k.Sum(17);
    const UOp* a = k.At(k.Input(kF32Type, Ones(289)), k.Offset({i, j}, {17, 17}));
    const UOp* b = k.At(k.Input(kF32Type, Ones(289)), k.Offset({i, j}, {17, 17}));
    k.Output(Reduce(k.g, Op::kAdd, Binary(k.g, Op::kDiv, a, b), Nodes{j}), i, 17);
    ExpectEverywhere(k, actions, Values(17, 17));
  }
  {
    Kernel k;
    const UOp* i = k.Loop(17);
    const UOp* j = k.Sum(17);
    const UOp* a = k.At(k.Input(kF32Type, Zeros(289)), k.Offset({j, i}, {17, 17}));
    const UOp* less = Cast(k.g, Lt(k.g, a, FloatConst(k.g, kF32Type, 1)), kI32Type);
    k.Output(Reduce(k.g, Op::kAdd, less, Nodes{j}), i, 17);
    ExpectEverywhere(k, actions, Values(17, 17));
  }
}

TEST(CasesTest, Case03BFloatSquaresOverTwoAxes) {
  Kernel k;
  const UOp* i = k.Loop(28);
  const UOp* a = k.Sum(2);
  const UOp* b = k.Sum(4096);
  const UOp* x = k.At(k.Input(kBF16Type, Ones(2 * 28 * 4096)), k.Offset({a, i, b}, {2, 28, 4096}));
  const UOp* half = Cast(k.g, Mul(k.g, x, FloatConst(k.g, kBF16Type, 0.5)), kF32Type);
  k.Output(Reduce(k.g, Op::kAdd, Mul(k.g, half, half), Nodes{a, b}), i, 28);
  ExpectEverywhere(k,
                   {"GROUPTOP(1,256) PADTO(3,32) UNROLL(2,0) UPCAST(0,7)",
                    "GROUPTOP(1,256) UNROLL(2,0) UPCAST(0,7)", "GROUPTOP(1,2) THREAD(1,2)"},
                   Values(28, 2048));
}

TEST(CasesTest, Case04HalfMaximumPadded) {
  Kernel k;
  const UOp* i = k.Loop(16);
  const UOp* j = k.Loop(13);
  const UOp* l = k.Sum(13);
  Values x(16 * 13 * 13);
  for (size_t e = 0; e < x.size(); ++e) x[e] = -static_cast<double>((e * 37) % 101) - 1;
  Values expected(16 * 13, -kInf);
  for (size_t e = 0; e < x.size(); ++e) expected[e / 13] = std::max(expected[e / 13], x[e]);
  const UOp* v = k.At(k.Input(kF16Type, x), k.Offset({i, j, l}, {16, 13, 13}));
  k.Output(Reduce(k.g, Op::kMax, v, Nodes{l}), k.Offset({i, j}, {16, 13}), 16 * 13);
  ExpectEverywhere(k,
                   {"PADTO(0,32) UPCAST(0,4) UPCAST(0,7) UPCAST(0,0)",
                    "PADTO(1,16) UPCAST(1,16) PADTO(2,16) UNROLL(0,4)"},
                   expected);
}

TEST(CasesTest, Case05TriangularCount) {
  Kernel k;
  const UOp* i = k.Loop(128);
  const UOp* l = k.Sum(128);
  const UOp* inside = Binary(k.g, Op::kLe, k.C(127), Add(k.g, i, l));
  const UOp* count = Reduce(k.g, Op::kAdd, Cast(k.g, inside, kI32Type), Nodes{l});
  k.Output(Sub(k.g, count, IntConst(k.g, kI32Type, 1)), i, 128);
  Values expected(128);
  std::iota(expected.begin(), expected.end(), 0);
  ExpectEverywhere(
      k,
      {"UPCAST(0,4) GROUPTOP(0,32) UNROLL(0,0)", "LOCAL(0,16) GROUP(0,16) UPCAST(0,0) UNROLL(1,4)"},
      expected);
}

TEST(CasesTest, Case06NestedReductions) {
  Kernel k;
  const UOp* a = k.Sum(4);
  const UOp* b = k.Sum(4);
  const UOp* c = k.Sum(4);
  const UOp* x = k.At(k.Input(kF32Type, Ones(64)), k.Offset({a, b, c}, {4, 4, 4}));
  const UOp* inner = Reduce(k.g, Op::kAdd, x, Nodes{b, c});
  k.Output(Reduce(k.g, Op::kAdd, inner, Nodes{a}), k.C(0), 1);
  ExpectEverywhere(k,
                   {"GROUPTOP(0,16)", "UNROLL(1,4) GROUPTOP(0,16)", "GROUPTOP(1,4) GROUPTOP(0,16)",
                    "GROUPTOP(0,2)", "UNROLL(1,4) GROUPTOP(0,2)", "GROUPTOP(1,4) GROUPTOP(0,2)"},
                   {64});
}

TEST(CasesTest, Case07Permutation) {
  Kernel k;
  const UOp* i = k.Loop(3);
  const UOp* j = k.Loop(4);
  const UOp* l = k.Loop(5);
  Values x(60);
  std::iota(x.begin(), x.end(), 0);
  Values expected;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 4; ++b) {
      for (int c = 0; c < 5; ++c) expected.push_back(b * 15 + a * 5 + c + 1);
    }
  }
  const UOp* v = k.At(k.Input(kF32Type, x), k.Offset({j, i, l}, {4, 3, 5}));
  k.Output(Add(k.g, v, FloatConst(k.g, kF32Type, 1)), k.Offset({i, j, l}, {3, 4, 5}), 60);
  EXPECT_EQ(
      ExpectEverywhere(k, {"SWAP(0,1)", "SWAP(0,1) SWAP(0,1)", "SWAP(0,1) UPCAST(0,2)"}, expected),
      0);
  EXPECT_EQ(ExpectEverywhere(k, {"SWAP(0,0)"}, expected), 1);
}

TEST(CasesTest, Case08RefusalsLeaveTheStateAlone) {
  Kernel k;
  const UOp* i = k.Loop(8);
  const UOp* j = k.Sum(6);
  const UOp* x = k.At(k.Input(kF32Type, Ones(48)), k.Offset({i, j}, {8, 6}));
  k.Output(Reduce(k.g, Op::kAdd, x, Nodes{j}), i, 8);
  for (const char* list : {"UPCAST(0,3)", "UPCAST(9,2)", "UNROLL(0,4)", "PADTO(0,64)"}) {
    EXPECT_EQ(ExpectEverywhere(k, {list}, Values(8, 6)), 1) << list;
  }
  EXPECT_EQ(ExpectEverywhere(k, {"UPCAST(0,0) UPCAST(0,2)"}, Values(8, 6)), 1);
  Scheduler scheduler(k.g, k.sink, Device().target());
  EXPECT_FALSE(scheduler.Apply({ActionKind::kUpcast, 0, -1}).ok());
  EXPECT_EQ(scheduler.kernel(), k.sink);
  EXPECT_TRUE(scheduler.actions().empty());
}

// A row sum over (4,4,4,4), with inputs whose sums depend on the order.
void MakeRowSum(Kernel& k) {
  const UOp* a = k.Loop(4);
  const UOp* b = k.Loop(4);
  const UOp* c = k.Loop(4);
  const UOp* d = k.Sum(4);
  Values x(256);
  for (size_t e = 0; e < x.size(); ++e) x[e] = 1.0 / static_cast<double>(e + 1);
  const UOp* v = k.At(k.Input(kF32Type, x), k.Offset({a, b, c, d}, {4, 4, 4, 4}));
  k.Output(Reduce(k.g, Op::kAdd, v, Nodes{d}), k.Offset({a, b, c}, {4, 4, 4}), 64);
}

TEST(CasesTest, Case09Threads) {
  Kernel k;
  MakeRowSum(k);
  Target four = Device().target();
  four.cores = 4;
  const auto refused = [&](const std::string& list, size_t applied) {
    Scheduler scheduler(k.g, k.sink, four);
    const absl::Status status = scheduler.ApplyAll(*ParseActions(list));
    EXPECT_FALSE(status.ok()) << list;
    EXPECT_EQ(scheduler.actions().size(), applied) << list;
  };
  refused("THREAD(3,4)", 0);
  refused("THREAD(0,2) THREAD(1,2)", 1);
  refused("THREAD(0,3)", 0);
  refused("THREAD(0,2) PADTO(0,3)", 1);
  four.cores = 2;
  refused("THREAD(0,4)", 0);

  four.cores = 4;
  const Values once = RunScheduled(k, k.sink);
  for (int64_t threads : {2, 4}) {
    Scheduler scheduler(k.g, k.sink, four);
    ASSERT_TRUE(scheduler.Apply({ActionKind::kThread, 0, threads}).ok());
    absl::StatusOr<std::unique_ptr<CpuKernel>> built =
        BuildKernel(k.g, scheduler.kernel(), Device().target(), Device());
    ASSERT_TRUE(built.ok()) << built.status();
    for (int run = 0; run < 1000; ++run) {
      const Values values = RunBuilt(k, **built, Flush::kEnd);
      ASSERT_EQ(std::memcmp(values.data(), once.data(), once.size() * sizeof(double)), 0);
    }
  }
}

TEST(CasesTest, Case09TwoCallersDoNotDeadlock) {
  Kernel k;
  const UOp* i = k.Loop(64);
  const UOp* x = k.At(k.Input(kF32Type, Ones(64)), i);
  k.Output(Add(k.g, x, x), i, 64);
  Target many = Device().target();
  many.cores = 16;
  Scheduler scheduler(k.g, k.sink, many);
  ASSERT_TRUE(scheduler.Apply({ActionKind::kThread, 0, 16}).ok());
  absl::StatusOr<std::unique_ptr<CpuKernel>> built =
      BuildKernel(k.g, scheduler.kernel(), Device().target(), Device());
  ASSERT_TRUE(built.ok()) << built.status();
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 2; ++caller) {
    callers.emplace_back([&] {
      for (int run = 0; run < 500; ++run) EXPECT_THAT(RunBuilt(k, **built, Flush::kEnd), Each(2));
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(CasesTest, Case14PaddingTouchesNothingOutside) {
  {
    Kernel k;
    const UOp* i = k.Loop(4);
    const UOp* j = k.Loop(4);
    const UOp* a = k.Sum(3);
    const UOp* b = k.Sum(3);
    const UOp* y = Sub(k.g, Add(k.g, i, a), k.C(1));
    const UOp* x = Sub(k.g, Add(k.g, j, b), k.C(1));
    const auto inside = [&](const UOp* v) {
      return And(k.g, Binary(k.g, Op::kLe, k.C(0), v), Lt(k.g, v, k.C(4)));
    };
    const UOp* image =
        k.At(k.Input(kF32Type, Ones(16)), k.Offset({y, x}, {4, 4}), And(k.g, inside(y), inside(x)));
    const UOp* filter = k.At(k.Input(kF32Type, Ones(9)), k.Offset({a, b}, {3, 3}));
    k.Output(Reduce(k.g, Op::kAdd, Mul(k.g, image, filter), Nodes{a, b}), k.Offset({i, j}, {4, 4}),
             16);
    ExpectEverywhere(k,
                     {"UPCAST(1,4)", "UPCAST(0,4) UPCAST(0,4)", "UNROLL(1,3) UPCAST(1,4)",
                      "PADTO(3,4) UNROLL(1,4)", "PADTO(1,8) UPCAST(1,8)"},
                     {4, 6, 6, 4, 6, 9, 9, 6, 6, 9, 9, 6, 4, 6, 6, 4});
  }
  {
    Kernel k;
    const UOp* i = k.Loop(5);
    const UOp* at = Sub(k.g, i, k.C(1));
    const UOp* gate = And(k.g, Binary(k.g, Op::kLe, k.C(0), at), Lt(k.g, at, k.C(3)));
    k.Output(k.At(k.Input(kF32Type, {1, 2, 3}), at, gate), i, 5);
    ExpectEverywhere(k, {"PADTO(0,4) UPCAST(0,4)", "PADTO(0,8) UPCAST(0,8)", "UPCAST(0,0)"},
                     {0, 1, 2, 3, 0});
  }
}

TEST(CasesTest, Case21MinimumStartsAtInfinityInEveryLane) {
  Kernel k;
  const UOp* i = k.Loop(4);
  const UOp* j = k.Sum(6);
  Values x(24);
  for (size_t e = 0; e < x.size(); ++e) x[e] = static_cast<double>(e) + 3;
  const UOp* v = k.At(k.Input(kF32Type, x), k.Offset({i, j}, {4, 6}));
  k.Output(Reduce(k.g, Op::kMin, v, Nodes{j}), i, 4);
  ExpectEverywhere(k, {"UPCAST(0,2)", "UPCAST(0,0)", "UNROLL(0,0)", "GROUP(0,3)"}, {3, 9, 15, 21});
}

TEST(CasesTest, Case22Nothing) {
  {
    Kernel k;
    const UOp* i = k.Loop(3);
    const UOp* j = k.Loop(2);
    const UOp* l = k.Sum(0);
    const UOp* a = k.At(k.Input(kF32Type, {}), k.Offset({i, l}, {3, 0}));
    const UOp* b = k.At(k.Input(kF32Type, {}), k.Offset({l, j}, {0, 2}));
    k.Output(Reduce(k.g, Op::kAdd, Mul(k.g, a, b), Nodes{l}), k.Offset({i, j}, {3, 2}), 6);
    ExpectEverywhere(k, {"UPCAST(0,3)", "UNROLL(0,0)"}, Zeros(6));
  }
  const Values identities = {0, 1, -kInf, kInf};
  const std::vector<Op> ops = {Op::kAdd, Op::kMul, Op::kMax, Op::kMin};
  for (size_t o = 0; o < ops.size(); ++o) {
    Kernel k;
    const UOp* l = k.Sum(0);
    k.Output(Reduce(k.g, ops[o], k.At(k.Input(kF32Type, {}), l), Nodes{l}), k.C(0), 1);
    EXPECT_EQ(RunScheduled(k, k.sink), Values{identities[o]}) << OpName(ops[o]);
  }
  Kernel k;
  const UOp* i = k.Loop(0);
  k.Output(k.At(k.Input(kF32Type, {}), i), i, 0);
  ExpectEverywhere(k, {"UPCAST(0,0)", "PADTO(0,4)"}, {});
}

TEST(CasesTest, Case23ThirteenAxes) {
  const std::vector<int64_t> shape = {1, 3, 1, 1, 1, 1, 5, 15, 5, 3, 4};
  Kernel k;
  Nodes axes;
  for (int64_t size : shape) axes.push_back(k.Loop(size));
  const UOp* o = k.Sum(2);
  const UOp* one = k.Sum(1);
  const UOp* w = k.At(k.Input(kF32Type, Ones(6)), Add(k.g, k.Offset({o, axes[1]}, {2, 3}), one));
  const UOp* v =
      k.At(k.Input(kF32Type, Ones(2 * 4500)),
           k.Offset({o, axes[6], axes[7], axes[8], axes[9], axes[10]}, {2, 5, 15, 5, 3, 4}));
  k.Output(Reduce(k.g, Op::kAdd, Mul(k.g, w, v), Nodes{o, one}), k.Offset(axes, shape), 13500);
  ExpectEverywhere(k,
                   {"UPCAST(1,2) UPCAST(0,0) PADTO(0,32)", "PADTO(1,4) UPCAST(1,2) UPCAST(10,0)"},
                   Values(13500, 2));
}

TEST(CasesTest, Case24MeanAndVarianceUnrolled) {
  Values x(4096);
  for (size_t e = 0; e < x.size(); ++e) x[e] = static_cast<double>(e % 16);
  const std::vector<std::string> actions = {"UNROLL(0,4) UNROLL(0,4) UNROLL(0,4) UNROLL(0,4)",
                                            "UNROLL(0,4) UNROLL(0,0)", "UNROLL(0,0)"};
  {
    Kernel k;
    const UOp* l = k.Sum(4096);
    const UOp* sum = Reduce(k.g, Op::kAdd, k.At(k.Input(kF32Type, x), l), Nodes{l});
    k.Output(Mul(k.g, sum, FloatConst(k.g, kF32Type, 1.0 / 4096)), k.C(0), 1);
    ExpectEverywhere(k, actions, {7.5});
  }
  Kernel k;
  const UOp* l = k.Sum(4096);
  const UOp* m = k.Sum(4096);
  const UOp* buffer = k.Input(kF32Type, x);
  const UOp* inverse = FloatConst(k.g, kF32Type, 1.0 / 4096);
  const UOp* mean = Mul(k.g, Reduce(k.g, Op::kAdd, k.At(buffer, l), Nodes{l}), inverse);
  const UOp* off = Sub(k.g, k.At(buffer, m), mean);
  k.Output(Mul(k.g, Reduce(k.g, Op::kAdd, Mul(k.g, off, off), Nodes{m}), inverse), k.C(0), 1);
  ExpectEverywhere(k, actions, {21.25}, 1e-5);
}

}  // namespace
}  // namespace quern
