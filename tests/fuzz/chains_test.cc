// Random chains of statements as one kernel with temporaries, under random legal actions: the
// kernel, its scheduled form and its machine code, run between guard pages, give what the
// statements give as kernels of their own. QUERN_FUZZ_KERNELS sets how many, QUERN_FUZZ_SEED where
// the seeds begin.
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/temporaries.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/kernel_runner.h"
#include "tests/fuzz/random_actions.h"
#include "tests/fuzz/random_caches.h"
#include "tests/fuzz/random_chain.h"
#include "tests/unit/group_kernel.h"

namespace quern {
namespace {

// Inputs lie in [-2, 2] and sums are scaled, so values stay small.
constexpr double kTolerance = 2e-3;

RandomKernel WithBuffers(const UOp* sink) {
  RandomKernel kernel;
  kernel.sink = sink;
  for (const KernelParam& p : CollectParams(sink)) {
    kernel.buffers.push_back({.slot = p.slot,
                              .dtype = p.dtype,
                              .elements = p.elements,
                              .loaded = p.read,
                              .stored = p.written,
                              .tolerance = p.written ? kTolerance : 0});
  }
  return kernel;
}

// Runs the statements as kernels of their own on the memory of the group, whose params have the
// slots that the tensors have here.
absl::Status RunApart(const RandomChain& chain, const RandomKernel& kernel,
                      const std::vector<GuardedMemory>& memory) {
  NotationOptions options;
  options.fuse = false;
  if (absl::Status s = ParseSizes(chain.sizes, options); !s.ok()) return s;
  absl::StatusOr<Program> program = ParseNotation(chain.formula, options);
  if (!program.ok()) return program.status();
  std::vector<BufferView> views = Views(kernel, memory);
  std::vector<std::vector<std::byte>> intermediates;
  for (const TensorInfo& t : program->tensors) {
    if (t.role != TensorRole::kIntermediate) continue;
    intermediates.emplace_back(t.bytes());
    views.push_back({t.slot, intermediates.back().data(), t.bytes()});
  }
  for (const KernelInfo& info : program->kernels) {
    if (absl::Status s = Interpret(info.sink, views); !s.ok()) return s;
  }
  return absl::OkStatus();
}

struct Tally {
  int shared = 0;      // kernels whose statements share a loop
  int contracted = 0;  // whose temporaries became shorter
  int actions = 0;
};

// Random actions, or those of the heuristic, on a kernel whose right results are `expected`: "" if
// its scheduled form, lowered form and machine code agree.
std::string RunScheduled(UOpGraph& g, const RandomKernel& kernel,
                         const std::vector<GuardedMemory>& expected, Flush flush, uint64_t seed,
                         Random& random, CpuDevice& device, Tally& tally) {
  const Target target = WithRandomCaches(device.target(), seed);
  Scheduler s(g, kernel.sink, target);
  if (random.Chance(25)) {
    ApplyHeuristic(s);
  } else {
    ApplyRandomActions(s, random, static_cast<int>(random.Below(9)));
  }
  tally.actions += static_cast<int>(s.actions().size());
  const std::string what =
      Concat("actions ", ActionsToString(s.actions()), "\n", PseudoCode(kernel.sink),
             "--- scheduled\n", PseudoCode(s.kernel()));
  const auto check = [&](const UOp* sink) -> std::string {
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
    const absl::Status status = InterpretWithTemporaries(sink, Views(kernel, actual));
    return status.ok() ? CompareMemory(kernel, expected, actual) : Concat(status.message(), "\n");
  };
  if (std::string wrong = check(kernel.sink); !wrong.empty()) return Concat(wrong, what);
  PassOptions options;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    tally.contracted += pass.name == "contract" && before != after ? 1 : 0;
  };
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, s.kernel(), target, options);
  if (!lowered.ok()) return Concat(lowered.status().message(), "\n", what);
  std::string wrong = check(lowered->sink);
  if (wrong.empty()) {
    const absl::StatusOr<std::unique_ptr<CpuKernel>> built =
        BuildKernel(g, s.kernel(), target, device);
    if (!built.ok()) return Concat(built.status().message(), "\n", what);
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
    if (absl::Status status = RunKernel(**built, Views(kernel, actual)); !status.ok()) {
      return Concat(status.message(), "\n", what);
    }
    wrong = CompareMemory(kernel, expected, actual);
  }
  if (wrong.empty()) return "";
  return Concat(wrong, what, FindFaultyPass(g, s.kernel(), target, check));
}

// "" if the chain of this seed is right.
std::string RunChain(uint64_t seed, CpuDevice& device, Tally& tally) {
  Random random(seed);
  const RandomChain chain = ChainGenerator(random).Make();
  const FormulaKernel k = GroupKernelOf(chain.formula, chain.sizes);
  RandomKernel kernel = WithBuffers(k.sink);
  if (random.Chance(20)) {
    for (const TestBuffer& b : kernel.buffers) {
      if (!b.stored) kernel.sink = MarkConstantSlot(*k.graph, kernel.sink, b.slot);
    }
  }
  tally.shared += SharedRanges(k.sink).empty() ? 0 : 1;
  const std::string what =
      Concat("seed ", seed, "\n", chain.formula, "\n--size ", chain.sizes, "\n");
  if (absl::Status status = VerifyKernel(k.sink); !status.ok()) {
    return Concat(what, status.message());
  }
  const Flush flush = random.Chance(50) ? Flush::kBegin : Flush::kEnd;
  const std::vector<GuardedMemory> expected = FilledMemory(kernel, seed, flush);
  if (absl::Status status = RunApart(chain, kernel, expected); !status.ok()) {
    return Concat(what, status.message());
  }
  const std::string wrong =
      RunScheduled(*k.graph, kernel, expected, flush, seed, random, device, tally);
  return wrong.empty() ? "" : Concat(what, wrong);
}

// What formulas do not give: stores with the same loops of which a temporary is read at another
// place, and a reduction that both stores use.
const UOp* HandmadeKernel(UOpGraph& g, Random& random) {
  const int64_t rows = random.Between(1, 9), columns = random.Between(1, 20);
  const UOp* i = Range(g, rows, 0, AxisType::kLoop);
  const UOp* j = Range(g, columns, 1, AxisType::kLoop);
  const UOp* k = Range(g, columns, 2, AxisType::kReduce);
  const UOp* l = Range(g, columns, 3, AxisType::kReduce);
  const auto at = [&](const UOp* row, const UOp* column) {
    return Add(g, Mul(g, row, IndexConst(g, columns)), column);
  };
  const auto flip = [&](const UOp* r) {
    return Add(g, Mul(g, r, IndexConst(g, -1)), IndexConst(g, r->range_size() - 1));
  };
  const UOp* x = Param(g, kF32Type, 0, rows * columns);
  const UOp* y = Param(g, kF32Type, 1, rows * columns);
  const UOp* t = Scratch(g, kF32Type, 0, rows * columns);
  const UOp* sum = Reduce(g, Op::kAdd, Load(g, Index(g, x, at(i, l))), std::vector<const UOp*>{l});
  const UOp* value = Add(g, Load(g, Index(g, x, at(i, j))), sum);
  const UOp* row = random.Chance(40) ? flip(i) : i;
  const UOp* column = random.Chance(30) ? flip(j) : j;
  const UOp* read = Load(g, Index(g, t, at(row, column)));
  if (random.Chance(50)) {
    read = Reduce(g, Op::kMax, Load(g, Index(g, t, at(row, k))), std::vector<const UOp*>{k});
  }
  if (random.Chance(60)) read = Add(g, read, sum);
  return Sink(g, std::vector<const UOp*>{Store(g, Index(g, t, at(i, j)), value),
                                         Store(g, Index(g, y, at(i, j)), read)});
}

std::string RunHandmade(uint64_t seed, CpuDevice& device, Tally& tally) {
  Random random(seed);
  UOpGraph g;
  const RandomKernel kernel = WithBuffers(HandmadeKernel(g, random));
  const Flush flush = random.Chance(50) ? Flush::kBegin : Flush::kEnd;
  const std::vector<GuardedMemory> expected = FilledMemory(kernel, seed, flush);
  if (absl::Status s = InterpretOn(kernel.sink, kernel, expected); !s.ok()) {
    return Concat(s.message());
  }
  const std::string wrong = RunScheduled(g, kernel, expected, flush, seed, random, device, tally);
  return wrong.empty() ? "" : Concat("seed ", seed, "\n", wrong);
}

TEST(ChainsTest, RandomActionsOnHandmadeKernels) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const FuzzSeeds seeds = ReadFuzzSeeds(300);
  Tally tally;
  RunSeeds(seeds, [&](uint64_t seed) { return RunHandmade(seed, **device, tally); });
}

TEST(ChainsTest, RandomActionsOnGroups) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const FuzzSeeds seeds = ReadFuzzSeeds(500);
  Tally tally;
  const int failures =
      RunSeeds(seeds, [&](uint64_t seed) { return RunChain(seed, **device, tally); });
  std::printf("%d shared loops, %d were contracted, %d actions\n", tally.shared, tally.contracted,
              tally.actions);
  if (seeds.count >= 100 && failures == 0) {
    EXPECT_GT(tally.shared, static_cast<int>(seeds.count / 2));
    EXPECT_GT(tally.contracted, static_cast<int>(seeds.count / 3));
  }
}

}  // namespace
}  // namespace quern
