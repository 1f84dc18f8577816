// Random kernels under random legal actions, compiled and run between guard pages, give what the
// interpreter gives. QUERN_FUZZ_KERNELS sets how many kernels, QUERN_FUZZ_SEED where the seeds
// begin. A failure prints the seed, the actions, the kernel, and the pass that broke it.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/kernel_runner.h"
#include "tests/fuzz/random_actions.h"
#include "tests/fuzz/random_caches.h"

namespace quern {
namespace {

// What is being run, for the handler of signals: a kernel that faults leaves no other trace.
std::string current_case;

void ReportAndDie(int signal) {
  const char* what = strsignal(signal);
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, "\n", 1);
  (void)!write(STDERR_FILENO, current_case.data(), current_case.size());
  _exit(1);
}

enum class Mode {
  kRandom,     // random legal actions
  kHeuristic,  // those of the heuristic
  kDecisions,  // of the heuristic with a few random decisions
  kConstants,  // random ones, every buffer that is only read being constant
};

// The heuristic with up to three of its decisions taken otherwise.
void ApplyDecisions(Scheduler& scheduler, Random& random) {
  const Scheduler plain = scheduler;
  Decisions decisions;
  ApplyHeuristic(scheduler, decisions);
  const int64_t count = random.Between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<Deviations> neighbours = decisions.Neighbours();
    if (neighbours.empty()) return;
    decisions = Decisions(random.Pick(neighbours));
    scheduler = plain;
    ApplyHeuristic(scheduler, decisions);
  }
}

class KernelFuzzer {
 public:
  explicit KernelFuzzer(CpuDevice& device) : device_(device) {}

  // "" if the kernel of this seed is right.
  std::string Run(uint64_t seed, Mode mode) {
    UOpGraph g;
    RandomKernel kernel = KernelGenerator(g, seed).Make();
    if (mode == Mode::kConstants) {
      for (const TestBuffer& b : kernel.buffers) {
        kernel.sink = MarkConstantSlot(g, kernel.sink, b.slot);
      }
    }
    Random random(~seed);
    const Target target = WithRandomCaches(device_.target(), seed);
    Scheduler scheduler(g, kernel.sink, target);
    if (mode == Mode::kHeuristic) {
      current_case = Concat("seed ", seed, "\nactions of the heuristic\n", ToText(kernel.sink));
      ApplyHeuristic(scheduler);
    } else if (mode == Mode::kDecisions) {
      current_case = Concat("seed ", seed, "\ndecisions\n", ToText(kernel.sink));
      ApplyDecisions(scheduler, random);
    } else {
      ApplyRandomActions(scheduler, random, static_cast<int>(random.Below(7)));
    }
    actions_ += static_cast<int>(scheduler.actions().size());
    const UOp* scheduled = scheduler.kernel();
    current_case = Concat("seed ", seed, "\nactions ", ActionsToString(scheduler.actions()), "\n",
                          ToText(kernel.sink), PseudoCode(kernel.sink), "--- scheduled\n",
                          PseudoCode(scheduled));

    const Flush flush = random.Chance(50) ? Flush::kBegin : Flush::kEnd;
    const std::vector<GuardedMemory> expected = FilledMemory(kernel, seed, flush);
    if (absl::Status s = InterpretOn(kernel.sink, kernel, expected); !s.ok()) return Failed(s);
    const auto check = [&](const UOp* sink) -> std::string {
      const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
      const absl::Status s = InterpretWithTemporaries(sink, Views(kernel, actual));
      return s.ok() ? CompareMemory(kernel, expected, actual) : Concat(s.message(), "\n");
    };
    if (absl::Status s = VerifyKernel(scheduled); !s.ok()) return Failed(s);
    if (const std::string wrong = check(scheduled); !wrong.empty()) {
      return Concat("the actions changed the kernel: ", wrong, current_case);
    }

    const absl::StatusOr<std::unique_ptr<CpuKernel>> built =
        BuildKernel(g, scheduled, target, device_);
    if (!built.ok()) {
      return Concat(Failed(built.status()), FindFaultyPass(g, scheduled, target, check));
    }
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
    if (absl::Status s = RunKernel(**built, Views(kernel, actual)); !s.ok()) return Failed(s);
    const std::string wrong = CompareMemory(kernel, expected, actual);
    if (wrong.empty()) return "";
    return Concat(wrong, current_case, FindFaultyPass(g, scheduled, target, check));
  }

  int actions() const { return actions_; }

 private:
  static std::string Failed(const absl::Status& status) {
    return Concat(status.message(), "\n", current_case);
  }

  CpuDevice& device_;
  int actions_ = 0;
};

void FuzzKernels(uint64_t count, Mode mode) {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, ReportAndDie);
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  KernelFuzzer fuzzer(**device);
  const FuzzSeeds seeds = ReadFuzzSeeds(count);
  const int failures = RunSeeds(seeds, [&](uint64_t seed) { return fuzzer.Run(seed, mode); });
  // Not a test of kernels without actions by mistake.
  if (failures == 0 && seeds.count >= 100) {
    EXPECT_GT(fuzzer.actions(), static_cast<int>(seeds.count / 2));
  }
}

// Seeds that once found a fault: conversions of 16-bit floats, a tile under a wider store, an index
// that is too hard to prove, threads in a nested reduction, a store under a constant mask, a block
// transposed along an axis that the offset also uses in a division.
TEST(KernelsTest, SeedsThatFailedOnce) {
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, ReportAndDie);
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  KernelFuzzer fuzzer(**device);
  for (uint64_t seed : {48, 475, 710, 1674, 1859, 2311, 2683, 2950, 3789, 6536, 200482, 201216,
                        202556, 1060713, 1066283}) {
    EXPECT_EQ(fuzzer.Run(seed, Mode::kRandom), "");
  }
  EXPECT_EQ(fuzzer.Run(407, Mode::kHeuristic), "");
}

TEST(KernelsTest, RandomActions) { FuzzKernels(2000, Mode::kRandom); }

TEST(KernelsTest, HeuristicActions) { FuzzKernels(500, Mode::kHeuristic); }

TEST(KernelsTest, DecisionsOfTheHeuristic) { FuzzKernels(500, Mode::kDecisions); }

// Operands that are packed once, before the run that is compared.
TEST(KernelsTest, RandomActionsOnConstants) { FuzzKernels(500, Mode::kConstants); }

}  // namespace
}  // namespace quern
