// Random scans (operation, direction, strictness, type, size, loops around and between, scans of
// scans and beside other reductions) under random legal actions or the heuristic's, compiled and
// run between guard pages, give what the interpreter gives for the reductions that they were.
// QUERN_FUZZ_KERNELS sets how many, QUERN_FUZZ_SEED where the seeds begin.
#include <gtest/gtest.h>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/merge_loops.h"
#include "rewrite/scan.h"
#include "tests/fuzz/fuzz_seeds.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/kernel_runner.h"
#include "tests/fuzz/random_actions.h"
#include "tests/fuzz/random_caches.h"
#include "tests/fuzz/random_kernel.h"

namespace quern {
namespace {

class ScanGenerator {
 public:
  ScanGenerator(UOpGraph& g, Random& random) : g_(g), random_(random) {}

  RandomKernel Make() {
    static const std::vector<int64_t> kSizes = {0,  1,  2,  3,  4,  5,  7,  8,
                                                13, 16, 24, 31, 32, 48, 61, 64};
    static const std::vector<ScalarType> kTypes = {
        ScalarType::kF32, ScalarType::kF32, ScalarType::kF64, ScalarType::kI32,
        ScalarType::kI64, ScalarType::kU32, ScalarType::kI16, ScalarType::kBF16};
    static const std::vector<Op> kOps = {Op::kAdd, Op::kAdd, Op::kMax, Op::kMin, Op::kMul};
    type_ = random_.Pick(kTypes);
    op_ = random_.Pick(kOps);
    if (op_ == Op::kMul && IsFloat(type_)) op_ = Op::kMax;  // Products of many are not bounded.
    reverse_ = random_.Chance(50);
    const int axes = static_cast<int>(random_.Between(1, 3));
    const int64_t scanned = random_.Below(axes);
    std::vector<const UOp*> output;
    for (int a = 0; a < axes; ++a) {
      const int64_t size = a == scanned ? random_.Pick(kSizes) : random_.Between(1, 9);
      output.push_back(Range(g_, size, next_axis_++, AxisType::kLoop));
    }
    place_ = output[scanned];
    for (const UOp* r : output) {
      if (r != place_ && random_.Chance(80)) others_.push_back(r);
    }
    const UOp* value = Scanned(place_, random_.Chance(15) ? 1 : 0);
    if (random_.Chance(25)) {
      if (random_.Chance(50)) reverse_ = !reverse_;
      value = Binary(g_, Op::kMax, value, Scanned(place_, random_.Chance(15) ? 1 : 0));
    }
    if (random_.Chance(20)) value = Binary(g_, Op::kMax, value, Total());
    int64_t elements = 0;
    const UOp* at = Place(output, &elements);
    kernel_.buffers.push_back(
        {.slot = slot_, .dtype = type_, .elements = elements, .stored = true});
    if (IsFloat(type_)) kernel_.buffers.back().tolerance = type_ == ScalarType::kBF16 ? 16 : 1e-2;
    const UOp* out = Index(g_, Param(g_, type_, slot_, elements), at);
    kernel_.sink = Sink(g_, std::vector<const UOp*>{Store(g_, out, value)});
    kernel_.fill = op_ == Op::kAdd ? FloatFill::kBounded : FloatFill::kAny;
    return kernel_;
  }

 private:
  // A load from a buffer of its own, the axes in any order, some with gaps or backwards.
  const UOp* Operand(std::vector<const UOp*> axes) {
    int64_t elements = 0;
    const UOp* at = Place(std::move(axes), &elements);
    kernel_.buffers.push_back(
        {.slot = slot_, .dtype = type_, .elements = elements, .loaded = true});
    return Load(g_, Index(g_, Param(g_, type_, slot_++, elements), at));
  }

  const UOp* Place(std::vector<const UOp*> axes, int64_t* elements) {
    for (size_t n = axes.size(); n > 1; --n) {
      if (random_.Chance(40)) {
        std::swap(axes[n - 1], axes[random_.Below(static_cast<int64_t>(n))]);
      }
    }
    const UOp* offset = IndexConst(g_, 0);
    int64_t stride = 1;
    for (size_t n = axes.size(); n-- > 0;) {
      const UOp* axis = axes[n];
      if (random_.Chance(10)) axis = Sub(g_, IndexConst(g_, axis->range_size() - 1), axis);
      offset = Add(g_, offset, Mul(g_, axis, IndexConst(g_, stride)));
      stride *= axes[n]->range_size();
      if (random_.Chance(10)) stride += random_.Between(1, 3);
    }
    *elements = stride;
    return offset;
  }

  const UOp* Mask(const UOp* j, const UOp* i) {
    const UOp* low = reverse_ ? i : j;
    const UOp* high = reverse_ ? j : i;
    switch (random_.Below(5)) {
      case 0:
        return Lt(g_, low, high);
      case 1:
        return Binary(g_, Op::kLe, low, high);
      case 2:
        return Lt(g_, low, Add(g_, high, IndexConst(g_, 1)));
      case 3:
        return Unary(g_, Op::kNot, Lt(g_, high, low));
      default:
        return Unary(g_, Op::kNot, Binary(g_, Op::kLe, high, low));
    }
  }

  // A masked reduction that ends at `i`; its value may be one itself.
  const UOp* Scanned(const UOp* i, int depth) {
    const UOp* j = Range(g_, i->range_size(), next_axis_++, AxisType::kReduce);
    std::vector<const UOp*> axes = others_;
    axes.push_back(j);
    std::vector<const UOp*> closed = {j};
    if (random_.Chance(20)) {
      closed.push_back(Range(g_, random_.Between(1, 5), next_axis_++, AxisType::kReduce));
      axes.push_back(closed.back());
    }
    const bool reverse = reverse_;
    if (depth > 0 && random_.Chance(30)) reverse_ = !reverse_;
    const UOp* value = depth > 0 ? Scanned(j, depth - 1) : Operand(axes);
    reverse_ = reverse;
    if (depth > 0 && closed.size() > 1) value = Binary(g_, Op::kMin, value, Operand(axes));
    if (random_.Chance(25)) {
      const UOp* scaled = Operand({j});
      value = Where(g_, Lt(g_, NumberConst(g_, type_, 0), scaled), value, scaled);
    }
    // Sums of 16-bit floats are taken in f32.
    const DType wide = type_ == ScalarType::kBF16 ? kF32Type : DType(type_);
    value = Cast(g_, value, wide);
    value = Where(g_, Mask(j, i), value, ReduceIdentity(g_, op_, wide));
    return Cast(g_, Reduce(g_, op_, value, closed), type_);
  }

  const UOp* Total() {
    const UOp* j = Range(g_, random_.Between(1, 20), next_axis_++, AxisType::kReduce);
    std::vector<const UOp*> axes = others_;
    if (random_.Chance(30)) axes.push_back(place_);
    axes.push_back(j);
    return Reduce(g_, Op::kMax, Operand(axes), {{j}});
  }

  UOpGraph& g_;
  Random& random_;
  RandomKernel kernel_;
  ScalarType type_ = ScalarType::kF32;
  Op op_ = Op::kAdd;
  bool reverse_ = false;
  int next_axis_ = 0;
  int64_t slot_ = 0;
  const UOp* place_ = nullptr;
  std::vector<const UOp*> others_;
};

struct Tally {
  int scans = 0;
  int actions = 0;
  int threads = 0;
};

// "" if the kernel of this seed is right.
std::string RunScan(uint64_t seed, CpuDevice& device, Tally& tally) {
  UOpGraph g;
  Random random(seed);
  RandomKernel kernel = ScanGenerator(g, random).Make();
  const UOp* scanned = RecognizeScans(g, MergeLoops(g, kernel.sink));
  for (const UOp* u : Toposort(scanned)) tally.scans += u->op == Op::kScan ? 1 : 0;
  const Target target = WithRandomCaches(device.target(), seed);
  Scheduler s(g, scanned, target);
  if (random.Chance(20)) {
    ApplyHeuristic(s);
  } else {
    if (random.Chance(30)) {
      const auto axis = static_cast<int>(random.Below(static_cast<int64_t>(s.axes().size()) + 1));
      s.Apply({ActionKind::kThread, axis, 2 + random.Below(7)}).IgnoreError();
    }
    ApplyRandomActions(s, random, static_cast<int>(random.Below(6)));
  }
  tally.actions += static_cast<int>(s.actions().size());
  for (const Action& a : s.actions()) tally.threads += a.kind == ActionKind::kThread ? 1 : 0;
  const std::string what = Concat("seed ", seed, "\nactions ", ActionsToString(s.actions()), "\n",
                                  PseudoCode(kernel.sink), "--- scanned\n", PseudoCode(scanned),
                                  "--- scheduled\n", PseudoCode(s.kernel()));
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
  std::string wrong = check(s.kernel());
  if (!wrong.empty()) return Concat("the actions changed the kernel: ", wrong, what);
  const absl::StatusOr<std::unique_ptr<CpuKernel>> built =
      BuildKernel(g, s.kernel(), target, device);
  if (!built.ok()) {
    return Concat(built.status().message(), "\n", what,
                  FindFaultyPass(g, s.kernel(), target, check));
  }
  const std::vector<GuardedMemory> actual = FilledMemory(kernel, seed, flush);
  if (absl::Status status = RunKernel(**built, Views(kernel, actual)); !status.ok()) {
    return Concat(status.message(), "\n", what);
  }
  wrong = CompareMemory(kernel, expected, actual);
  if (wrong.empty()) return "";
  return Concat(wrong, what, FindFaultyPass(g, s.kernel(), target, check));
}

TEST(ScansTest, RandomActions) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  const FuzzSeeds seeds = ReadFuzzSeeds(600);
  Tally tally;
  const int failures =
      RunSeeds(seeds, [&](uint64_t seed) { return RunScan(seed, **device, tally); });
  if (failures == 0 && seeds.count >= 100) {
    EXPECT_GT(tally.scans, static_cast<int>(seeds.count / 2));
    EXPECT_GT(tally.actions, static_cast<int>(seeds.count / 2));
    EXPECT_GT(tally.threads, static_cast<int>(seeds.count / 20));
  }
}

}  // namespace
}  // namespace quern
