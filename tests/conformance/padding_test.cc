// PADTO puts the identity of each reduction where the padding is, whatever is reduced: the results
// are exact, not merely close.
#include <gtest/gtest.h>

#include <functional>

#include "optimizer/scheduler.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

constexpr int64_t kRows = 4;

struct Padded {
  const char* name;
  const char* formula;
  std::function<float(int64_t row, int64_t column)> input;
  std::function<float(int64_t row, int64_t size)> expected;
};

// Inputs for which a wrong fill value shows: maxima below zero, products and sums of exponentials
// that a 0 in the padding would change.
const std::vector<Padded>& Kernels() {
  static const std::vector<Padded> kernels = {
      {"sum", "y[i] = sum[j](x[i,j])", [](int64_t r, int64_t) { return 1.0f + r; },
       [](int64_t r, int64_t n) { return static_cast<float>(n) * (1.0f + r); }},
      {"max", "y[i] = max[j](x[i,j])", [](int64_t r, int64_t c) { return -5.0f - r - c; },
       [](int64_t r, int64_t) { return -5.0f - r; }},
      {"min", "y[i] = min[j](x[i,j])", [](int64_t r, int64_t c) { return 5.0f + r + c; },
       [](int64_t r, int64_t) { return 5.0f + r; }},
      {"product", "y[i] = prod[j](x[i,j])", [](int64_t, int64_t c) { return c % 2 ? -1.0f : 2.0f; },
       [](int64_t, int64_t n) {
         float product = 1;
         for (int64_t c = 0; c < n; ++c) product *= c % 2 ? -1.0f : 2.0f;
         return product;
       }},
      {"sum of exp", "y[i] = sum[j](exp(x[i,j]))", [](int64_t, int64_t) { return 0.0f; },
       [](int64_t, int64_t n) { return static_cast<float>(n); }},
      {"sum of quotients", "y[i] = sum[j](x[i,j]/x[i,j])",
       [](int64_t r, int64_t) { return 3.0f + r; },
       [](int64_t, int64_t n) { return static_cast<float>(n); }},
      {"product of exp", "y[i] = prod[j](exp(x[i,j])*2)", [](int64_t, int64_t) { return 0.0f; },
       [](int64_t, int64_t n) { return std::ldexp(1.0f, static_cast<int>(n)); }},
  };
  return kernels;
}

struct Size {
  int64_t size;
  int64_t multiple;
};

TEST(PaddingTest, ReductionsAreExact) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  int refused = 0;
  int ran = 0;
  for (const Padded& p : Kernels()) {
    for (const Size& size : {Size{16, 32}, Size{17, 32}, Size{13, 16}}) {
      for (const char* after :
           {"", "UNROLL(0,4)", "UNROLL(0,16)", "UNROLL(0,0)", "GROUP(0,4)", "GROUP(0,0)",
            "GROUPTOP(0,4)", "GROUPTOP(0,2) UNROLL(1,8)", "GROUPTOP(0,4) SWAP(0,1)", "UPCAST(0,0)",
            "UPCAST(0,4) UNROLL(0,2)", "GROUP(0,4) UPCAST(0,2) UNROLL(1,2)"}) {
        FormulaKernel k = KernelOf(p.formula, Concat("i=", kRows, ",j=", size.size));
        Scheduler s(*k.graph, k.sink, (*device)->target());
        // 16 is a multiple of 16 already: there is nothing to pad to but 32.
        ASSERT_EQ(s.Apply({ActionKind::kPadTo, 1, size.multiple}), absl::OkStatus());
        if (!s.ApplyAll(*ParseActions(after)).ok()) {
          ++refused;
          continue;
        }
        absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, s.kernel(), (*device)->target());
        ASSERT_TRUE(built.ok()) << built.status() << " " << p.name << " " << after;
        absl::StatusOr<std::unique_ptr<CpuKernel>> kernel =
            (*device)->Load(std::move(built->image));
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        const KernelBuffers buffers(k.sink);
        int64_t in = 0;
        int64_t out = 0;
        for (const KernelParam& param : CollectParams(k.sink))
          (param.written ? out : in) = param.slot;
        auto* x = static_cast<float*>(buffers.data(in));
        for (int64_t i = 0; i < kRows * size.size; ++i) {
          x[i] = p.input(i / size.size, i % size.size);
        }
        (*kernel)->Run(buffers.For((*kernel)->image()));
        const auto* y = static_cast<const float*>(buffers.data(out));
        for (int64_t r = 0; r < kRows; ++r) {
          EXPECT_EQ(y[r], p.expected(r, size.size))
              << p.name << " of " << size.size << " padded to " << size.multiple << ", " << after;
        }
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 200);
  std::printf("%d schedules ran, %d were refused\n", ran, refused);
}

// The end of a padded loop writes its own elements and none behind them, also when the value was
// narrowed from wider lanes.
TEST(PaddingTest, TheEndWritesNothingBehindIt) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  for (const char* to : {"i8", "i16", "i32"}) {
    for (int64_t columns : {9, 17, 18, 23}) {
      FormulaKernel k = KernelOf(Concat("y[i,j] = ", to, "(max(a[i,j],b[i,j]))"),
                                 Concat("i=4,j=", columns), "a=u64,b=u64");
      // Rows after columns: each row's end is written after the next row's beginning.
      Scheduler s(*k.graph, k.sink, (*device)->target());
      ASSERT_EQ(s.ApplyAll(*ParseActions("PADTO(1,8) UPCAST(1,8) SWAP(0,1)")), absl::OkStatus());
      EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), (*device)->target(), **device),
                "")
          << to << " " << columns;
    }
  }
}

// What is left when everything is degenerate.
TEST(PaddingTest, ScalarsAndSingleElements) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const Target& target = (*device)->target();
  for (const auto& [formula, sizes] :
       std::vector<std::pair<const char*, const char*>>{{"y[] = x[]*2+1", ""},
                                                        {"y[] = sum[i](x[i])", "i=1"},
                                                        {"y[i] = sum[j](x[i,j])", "i=5,j=1"},
                                                        {"y[i] = max[j](x[i,j])", "i=1,j=7"},
                                                        {"y[i,j] = x[i,j]+1", "i=0,j=4"},
                                                        {"y[i] = sum[j](x[i,j])", "i=4,j=0"},
                                                        {"y[] = sum[j](x[j])", "j=0"}}) {
    FormulaKernel k = KernelOf(formula, sizes);
    EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, k.sink, target, **device), "")
        << formula << " " << sizes;
  }
}

}  // namespace
}  // namespace quern
