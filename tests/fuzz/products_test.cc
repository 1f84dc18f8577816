// Random products of bytes and of bf16, in any layout, under random legal actions with matrix
// instructions among them: the kernel, its lowered form and its machine code give the same.
// QUERN_FUZZ_KERNELS sets how many, QUERN_FUZZ_SEED where the seeds begin.
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/kernel_flags.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/kernel_runner.h"
#include "tests/fuzz/random_actions.h"
#include "tests/fuzz/random_caches.h"
#include "tests/fuzz/random_kernel.h"

namespace quern {
namespace {

// Bytes, words and bf16 in both orders, and what no instruction multiplies.
struct Types {
  ScalarType a;
  ScalarType b;
  ScalarType sum;
};
const std::vector<Types>& AllTypes() {
  static const std::vector<Types> types = {
      {ScalarType::kU8, ScalarType::kI8, ScalarType::kI32},
      {ScalarType::kU8, ScalarType::kI8, ScalarType::kI32},
      {ScalarType::kI8, ScalarType::kU8, ScalarType::kI32},
      {ScalarType::kBF16, ScalarType::kBF16, ScalarType::kF32},
      {ScalarType::kI8, ScalarType::kI8, ScalarType::kI32},
      {ScalarType::kU8, ScalarType::kI16, ScalarType::kI32},
      {ScalarType::kU16, ScalarType::kI8, ScalarType::kI32},
  };
  return types;
}

// out[i,j] = Σ_k A·B (or Σ_{k,l}), each operand with its axes in any order, some with an offset
// whose outside is masked.
class ProductGenerator {
 public:
  ProductGenerator(UOpGraph& g, Random& random) : g_(g), random_(random) {}

  RandomKernel Make() {
    const Types types = random_.Pick(AllTypes());
    static const std::vector<int64_t> kRows = {1, 2, 3, 4, 8, 12, 14, 17};
    static const std::vector<int64_t> kColumns = {1, 5, 8, 16, 16, 32, 32, 33, 48, 64};
    static const std::vector<int64_t> kDepths = {1, 3, 4, 7, 8, 16, 20, 31, 64, 72, 127};
    const UOp* i = Range(g_, random_.Pick(kRows), 0, AxisType::kLoop);
    const UOp* j = Range(g_, random_.Pick(kColumns), 1, AxisType::kLoop);
    std::vector<const UOp*> closed = {Range(g_, random_.Pick(kDepths), 2, AxisType::kReduce)};
    if (random_.Chance(25))
      closed.push_back(Range(g_, random_.Between(1, 4), 3, AxisType::kReduce));
    const UOp* a = Operand(types.a, types.sum, i, closed);
    const UOp* b = Operand(types.b, types.sum, j, closed);
    const UOp* value = Reduce(g_, Op::kAdd, Mul(g_, a, b), closed);
    int64_t elements = 0;
    const UOp* place = Place({i, j}, &elements);
    const UOp* out = Param(g_, types.sum, 2, elements);
    kernel_.buffers.push_back(
        {.slot = 2, .dtype = types.sum, .elements = elements, .stored = true});
    if (IsFloat(types.sum)) kernel_.buffers.back().tolerance = 1e-2;
    kernel_.sink = Sink(g_, std::vector<const UOp*>{Store(g_, Index(g_, out, place), value)});
    return kernel_;
  }

 private:
  // The offset of an element of an array with these axes in a random order, perhaps with a gap
  // between the rows.
  const UOp* Place(std::vector<const UOp*> axes, int64_t* elements) {
    for (size_t n = axes.size(); n > 1; --n) {
      std::swap(axes[n - 1], axes[random_.Below(static_cast<int64_t>(n))]);
    }
    const UOp* offset = IndexConst(g_, 0);
    int64_t stride = 1;
    for (const UOp* axis : axes) {
      offset = Add(g_, offset, Mul(g_, axis, IndexConst(g_, stride)));
      stride *= axis->range_size();
      if (random_.Chance(15)) stride += random_.Between(1, 3);
    }
    *elements = stride;
    return offset;
  }

  const UOp* Operand(ScalarType type, ScalarType sum, const UOp* own,
                     const std::vector<const UOp*>& closed) {
    std::vector<const UOp*> axes = closed;
    axes.push_back(own);
    int64_t elements = 0;
    const UOp* offset = Place(axes, &elements);
    const auto slot = static_cast<int64_t>(kernel_.buffers.size());
    const UOp* gate = nullptr;
    if (random_.Chance(15)) {
      const UOp* axis = random_.Pick(axes);
      gate = Lt(g_, axis, IndexConst(g_, random_.Between(1, axis->range_size())));
    }
    const UOp* buffer = Param(g_, type, slot, elements);
    kernel_.buffers.push_back({.slot = slot, .dtype = type, .elements = elements, .loaded = true});
    const UOp* value = Load(g_, Index(g_, buffer, offset, gate));
    return g_.Make(Op::kCast, sum, {value});
  }

  UOpGraph& g_;
  Random& random_;
  RandomKernel kernel_;
};

struct Tally {
  int matrix = 0;
};

// "" if the kernel of this seed is right.
std::string RunProduct(uint64_t seed, CpuDevice& device, Tally& tally) {
  UOpGraph g;
  Random random(seed);
  RandomKernel kernel = ProductGenerator(g, random).Make();
  if (random.Chance(25)) kernel.sink = MarkConstantSlot(g, kernel.sink, random.Below(2));
  const Target target = WithRandomCaches(device.target(), seed);
  Scheduler s(g, kernel.sink, target);
  if (random.Chance(20)) {
    ApplyHeuristic(s);
  } else {
    ApplyRandomActions(s, random, static_cast<int>(random.Below(3)));
    if (random.Chance(50)) {
      const auto reduces = static_cast<int64_t>(s.reduce_axes().size());
      if (reduces > 0) {
        const auto axis = static_cast<int>(random.Below(reduces));
        s.Apply({ActionKind::kPadTo, s.reduce_axes()[axis], 4}).IgnoreError();
      }
    }
    for (int axis = 0; axis < 2; ++axis) {
      if (random.Chance(80)) s.Apply({ActionKind::kTensorCore, axis, 0}).IgnoreError();
    }
    // Lanes for the instructions.
    const auto axis = static_cast<int>(random.Below(2));
    if (random.Chance(70)) {
      s.Apply({ActionKind::kUpcast, axis, random.Chance(50) ? 16 : 32}).IgnoreError();
    }
    ApplyRandomActions(s, random, static_cast<int>(random.Below(5)));
  }
  for (const Action& a : s.actions()) tally.matrix += a.kind == ActionKind::kTensorCore ? 1 : 0;
  const std::string what =
      Concat("seed ", seed, "\nactions ", ActionsToString(s.actions()), "\n",
             PseudoCode(kernel.sink), "--- scheduled\n", PseudoCode(s.kernel()));
  const Flush flush = random.Chance(50) ? Flush::kBegin : Flush::kEnd;
  const std::vector<GuardedMemory> expected = FilledMemory(kernel, seed, flush);
  if (absl::Status status = InterpretOn(kernel.sink, kernel, expected); !status.ok()) {
    return Concat(status.message(), "\n", what);
  }
  const auto check = [&](const UOp* sink) -> std::string {
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
    const absl::Status status = InterpretWithTemporaries(sink, Views(kernel, actual));
    return status.ok() ? CompareMemory(kernel, expected, actual) : Concat(status.message(), "\n");
  };
  const absl::StatusOr<std::unique_ptr<CpuKernel>> built =
      BuildKernel(g, s.kernel(), target, device);
  if (!built.ok()) return Concat(built.status().message(), "\n", what);
  // A machine without the instructions still has the lowered form checked.
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, s.kernel(), target);
  std::string wrong = check(lowered->sink);
  if (wrong.empty()) {
    const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
    if (absl::Status status = RunKernel(**built, Views(kernel, actual)); !status.ok()) {
      return Concat(status.message(), "\n", what);
    }
    wrong = CompareMemory(kernel, expected, actual);
  }
  if (wrong.empty()) return "";
  return Concat(wrong, what, FindFaultyPass(g, s.kernel(), target, check));
}

TEST(ProductsTest, RandomActionsWithMatrixInstructions) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const FuzzSeeds seeds = ReadFuzzSeeds(500);
  Tally tally;
  RunSeeds(seeds, [&](uint64_t seed) { return RunProduct(seed, **device, tally); });
  if ((*device)->target().Has("avx2") && seeds.count >= 100) {
    EXPECT_GT(tally.matrix, static_cast<int>(seeds.count / 5));
  }
}

}  // namespace
}  // namespace quern
