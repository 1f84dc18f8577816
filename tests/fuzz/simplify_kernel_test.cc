#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rewrite/build.h"
#include "rewrite/interpret.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/simplify.h"
#include "tests/random_expression.h"

// Whole kernels: gates, reductions over ranges of any size (0 and 1 among them), loops. What the
// interpreter computes must not change.

namespace quern {
namespace {

constexpr int64_t kElements = 60;

class RandomKernel {
 public:
  RandomKernel(UOpGraph& g, uint64_t seed) : g_(g), random_(g, seed) {}

  const UOp* Make() {
    const UOp* out = Param(g_, kI32Type, 100, kElements);
    static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5};
    const UOp* i = Range(g_, kSizes[random_.Below(5)], 10, AxisType::kLoop);
    const UOp* j = Range(g_, kSizes[random_.Below(5)], 11, AxisType::kLoop);
    std::vector<const UOp*> reduced;
    for (int n = 0; n < static_cast<int>(random_.Below(3)); ++n) {
      static constexpr int64_t kReduced[] = {0, 1, 1, 2, 3, 4};
      reduced.push_back(Range(g_, kReduced[random_.Below(6)], 12 + n, AxisType::kReduce));
    }
    std::vector<const UOp*> inside = {i, j};
    inside.insert(inside.end(), reduced.begin(), reduced.end());
    const UOp* value = Value(inside, 3);
    if (!reduced.empty()) {
      static constexpr Op kOps[] = {Op::kAdd, Op::kMul, Op::kMax, Op::kMin};
      value = Reduce(g_, kOps[random_.Below(4)], value, reduced);
    }
    const std::vector<const UOp*> outside = {i, j};
    const UOp* offset = Add(g_, Mul(g_, i, IndexConst(g_, 5)), j);
    const UOp* gate = random_.Below(2) == 0 ? nullptr : Gate(outside);
    const UOp* store = Store(g_, Index(g_, out, offset, gate), value);
    if (random_.Below(2) == 0) return Sink(g_, {&store, 1});
    // The lowered form: loops around the statement.
    const UOp* loops =
        g_.Make(Op::kLoop, kVoidType, {i, g_.Make(Op::kLoop, kVoidType, {j, store})});
    const UOp* phase = g_.Make(Op::kPhase, kVoidType, {loops});
    return Sink(g_, {&phase, 1});
  }

 private:
  const UOp* Offset(const std::vector<const UOp*>& ranges, int depth) {
    const UOp* sum = IndexConst(g_, static_cast<int64_t>(random_.Below(20)) - 10);
    for (const UOp* r : ranges) {
      const UOp* term = r;
      if (random_.Below(3) == 0) {
        term = Binary(g_, random_.Below(2) == 0 ? Op::kFloorDiv : Op::kFloorMod,
                      Add(g_, r, random_.Constant(kIndexType)),
                      IndexConst(g_, 1 + static_cast<int64_t>(random_.Below(6))));
      }
      sum = Add(g_, sum, Mul(g_, term, IndexConst(g_, static_cast<int64_t>(random_.Below(9)) - 2)));
    }
    return sum;
  }

  const UOp* Gate(const std::vector<const UOp*>& ranges) {
    const UOp* low = Lt(g_, IndexConst(g_, -1), Offset(ranges, 1));
    const UOp* high = Lt(g_, Offset(ranges, 1), IndexConst(g_, 9));
    return And(g_, low, random_.Below(4) == 0 ? BoolConst(g_, random_.Below(3) != 0) : high);
  }

  const UOp* Value(const std::vector<const UOp*>& ranges, int depth) {
    if (depth == 0 || random_.Below(4) == 0) {
      const UOp* buffer = Param(g_, kI32Type, static_cast<int64_t>(random_.Below(2)), kElements);
      const UOp* offset = Binary(g_, Op::kFloorMod, Offset(ranges, 1), IndexConst(g_, kElements));
      return Load(g_,
                  quern::Index(g_, buffer, offset, random_.Below(2) == 0 ? nullptr : Gate(ranges)));
    }
    static constexpr Op kOps[] = {Op::kAdd, Op::kMul, Op::kSub, Op::kMax, Op::kMin};
    if (random_.Below(5) == 0) {
      return Where(g_, Gate(ranges), Value(ranges, depth - 1), Value(ranges, depth - 1));
    }
    return Binary(g_, kOps[random_.Below(5)], Value(ranges, depth - 1), Value(ranges, depth - 1));
  }

  UOpGraph& g_;
  RandomExpression random_;
};

std::vector<int32_t> Output(const UOp* sink, absl::Status* status) {
  std::vector<int32_t> inputs[2];
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < kElements; ++i) inputs[n].push_back((i * 37 + n * 11) % 23 - 9);
  }
  std::vector<int32_t> out(kElements, 12345);
  const BufferView views[] = {{0, inputs[0].data(), kElements * 4},
                              {1, inputs[1].data(), kElements * 4},
                              {100, out.data(), kElements * 4}};
  *status = Interpret(sink, views);
  return out;
}

TEST(SimplifyKernelFuzz, SimplifiedKernelsComputeTheSame) {
  const char* chosen = std::getenv("QUERN_FUZZ_SEED");
  const uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  const uint64_t count = chosen == nullptr ? 3000 : 1;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    UOpGraph g;
    const UOp* sink = RandomKernel(g, seed).Make();
    const UOp* simple = Simplify(g, sink);
    absl::Status status;
    const std::vector<int32_t> expected = Output(sink, &status);
    if (!status.ok()) continue;  // An access outside a buffer: such a kernel is refused.
    const std::vector<int32_t> result = Output(simple, &status);
    ASSERT_TRUE(status.ok()) << "QUERN_FUZZ_SEED=" << seed << " " << status << "\n"
                             << PseudoCode(simple);
    ASSERT_EQ(expected, result) << "QUERN_FUZZ_SEED=" << seed << "\n"
                                << PseudoCode(sink) << "\n"
                                << PseudoCode(simple);
    ASSERT_EQ(Simplify(g, simple), simple) << "QUERN_FUZZ_SEED=" << seed;
  }
}

}  // namespace
}  // namespace quern
