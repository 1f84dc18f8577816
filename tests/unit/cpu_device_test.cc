#include "runtime/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "optimizer/scheduler.h"
#include "runtime/cpu_target.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<CpuDevice> Device(int threads = 0) {
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(threads);
  QUERN_CHECK(device.ok());
  return *std::move(device);
}

KernelImage ImageOf(const FormulaKernel& k, const Target& target, const char* actions = "") {
  Scheduler scheduler(*k.graph, k.sink, target);
  QUERN_CHECK(scheduler.ApplyAll(*ParseActions(actions)).ok());
  absl::StatusOr<BuiltKernel> built = BuildKernel(*k.graph, scheduler.kernel(), target);
  QUERN_CHECK(built.ok());
  return std::move(built->image);
}

TEST(CpuTargetTest, DescribesThisMachine) {
  const Target target = DetectCpu();
  EXPECT_EQ(target.kind, TargetKind::kCpu);
  EXPECT_FALSE(target.name.empty());
  EXPECT_FALSE(target.llvm_cpu.empty());
  EXPECT_THAT(target.llvm_triple, HasSubstr("-"));
  EXPECT_TRUE(std::is_sorted(target.features.begin(), target.features.end()));
  EXPECT_GE(target.cores, 1);
  EXPECT_GE(target.vector_bytes, 16);
  EXPECT_GE(target.l1_bytes, 8 << 10);
  EXPECT_GE(target.l2_bytes, target.l1_bytes);
}

// What changes code or its speed changes the fingerprint, so that caches miss.
TEST(CpuTargetTest, EveryFieldIsInTheFingerprint) {
  const Target base = DetectCpu();
  const std::string fingerprint = TargetFingerprint(base);
  EXPECT_EQ(TargetFingerprint(base), fingerprint);
  const auto differs = [&](auto change) {
    Target other = base;
    change(other);
    return TargetFingerprint(other) != fingerprint;
  };
  EXPECT_TRUE(differs([](Target& t) { t.name += "x"; }));
  EXPECT_TRUE(differs([](Target& t) { t.llvm_triple += "x"; }));
  EXPECT_TRUE(differs([](Target& t) { t.llvm_cpu += "x"; }));
  EXPECT_TRUE(differs([](Target& t) { t.features.emplace_back("a-feature"); }));
  EXPECT_TRUE(differs([](Target& t) { ++t.cores; }));
  EXPECT_TRUE(differs([](Target& t) { t.vector_bytes *= 2; }));
  EXPECT_TRUE(differs([](Target& t) { t.vector_registers *= 2; }));
  EXPECT_TRUE(differs([](Target& t) { t.l1_bytes *= 2; }));
  EXPECT_TRUE(differs([](Target& t) { t.l2_bytes *= 2; }));
  EXPECT_TRUE(differs([](Target& t) { t.l3_bytes *= 2; }));
}

TEST(CpuDeviceTest, ThreadsLimitTheTarget) {
  EXPECT_EQ(Device()->target().cores, DetectCpu().cores);
  EXPECT_EQ(Device(3)->target().cores, 3);
  const absl::StatusOr<std::unique_ptr<CpuDevice>> none = CpuDevice::Create(-1);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuDeviceTest, RunsAKernel) {
  std::unique_ptr<CpuDevice> device = Device();
  FormulaKernel k = KernelOf("y[i] = x[i]*2+z[i]", "i=37");
  absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device->Load(ImageOf(k, device->target()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> y(37, -1), x(37), z(37, 0.5f);
  for (int i = 0; i < 37; ++i) x[i] = static_cast<float>(i);
  std::map<int64_t, void*> memory = {{0, x.data()}, {1, z.data()}, {2, y.data()}};
  std::vector<void*> pointers;
  for (const ImageParam& p : (*kernel)->image().params) pointers.push_back(memory.at(p.slot));
  (*kernel)->Run(pointers);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(y[i], static_cast<float>(2 * i) + 0.5f);
}

TEST(CpuDeviceTest, BadImagesAreErrors) {
  std::unique_ptr<CpuDevice> device = Device();
  FormulaKernel k = KernelOf("y[i] = x[i]*2", "i=37");
  const KernelImage good = ImageOf(k, device->target());

  KernelImage image = good;
  image.object = "this is no object file";
  EXPECT_FALSE(device->Load(image).ok());
  image.object = "";
  EXPECT_FALSE(device->Load(image).ok());
  image.object = good.object.substr(0, good.object.size() / 2);
  EXPECT_FALSE(device->Load(image).ok());

  image = good;
  image.phases[0].symbol = "no_such_function";
  const absl::Status missing = device->Load(image).status();
  EXPECT_THAT(std::string(missing.message()), HasSubstr("no_such_function"));

  image = good;
  image.phases[0].scratch_bytes = int64_t{1} << 50;
  EXPECT_EQ(device->Load(image).status().code(), absl::StatusCode::kResourceExhausted);

  // None of this harms the device.
  EXPECT_TRUE(device->Load(good).ok());
}

TEST(CpuDeviceTest, KernelsWithTheSameSymbolsAreKeptApart) {
  std::unique_ptr<CpuDevice> device = Device();
  FormulaKernel doubled = KernelOf("y[i] = x[i]*2", "i=8");
  FormulaKernel tripled = KernelOf("y[i] = x[i]*3", "i=8");
  KernelImage a = ImageOf(doubled, device->target());
  KernelImage b = ImageOf(tripled, device->target());
  ASSERT_EQ(a.phases[0].symbol, b.phases[0].symbol);
  std::unique_ptr<CpuKernel> first = *device->Load(a);
  std::unique_ptr<CpuKernel> second = *device->Load(b);
  const KernelBuffers expect_first(doubled.sink), expect_second(tripled.sink);
  ASSERT_TRUE(Interpret(doubled.sink, expect_first.Views()).ok());
  ASSERT_TRUE(Interpret(tripled.sink, expect_second.Views()).ok());
  const KernelBuffers got_first(doubled.sink), got_second(tripled.sink);
  first->Run(got_first.For(first->image()));
  first.reset();  // Its code goes; that of the other stays.
  second->Run(got_second.For(second->image()));
  EXPECT_EQ(got_first.Compare(expect_first, 0), "");
  EXPECT_EQ(got_second.Compare(expect_second, 0), "");
}

// A two-stage reduction has a temporary for its partial sums and scratch memory; each run must have
// its own.
TEST(CpuDeviceTest, ManyThreadsMayRunOneKernel) {
  std::unique_ptr<CpuDevice> device = Device(2);
  FormulaKernel k = KernelOf("s[] = sum[i](x[i])", "i=8192");
  std::unique_ptr<CpuKernel> kernel =
      *device->Load(ImageOf(k, device->target(), "GROUPTOP(0,2) THREAD(0,2) UNROLL(1,16)"));
  EXPECT_EQ(kernel->image().phases.size(), 2u);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const KernelBuffers expected(k.sink, caller * 100);
      if (!Interpret(k.sink, expected.Views()).ok()) ++wrong;
      for (int run = 0; run < 200; ++run) {
        const KernelBuffers actual(k.sink, caller * 100);
        kernel->Run(actual.For(kernel->image()));
        if (!actual.Compare(expected, 1e-4).empty()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CpuDeviceTest, NothingRunsOnSizeZero) {
  std::unique_ptr<CpuDevice> device = Device();
  FormulaKernel k = KernelOf("y[i] = x[i]*2", "i=0");
  absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device->Load(ImageOf(k, device->target()));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<void*> nothing((*kernel)->image().params.size(), nullptr);
  (*kernel)->Run(nothing);
}

}  // namespace
}  // namespace quern
