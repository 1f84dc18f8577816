#include "codegen/share_values.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "codegen/lower.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/verify.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

constexpr const char* kSoftmax =
    "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])";
constexpr const char* kRow = "UNROLL(0,16) UNROLL(1,16) UPCAST(1,16)";

struct Shared {
  int buffers = 0;         // of scratch memory that the pass makes
  bool in_output = false;  // whether an output is read
};

// What the pass does. The lowered kernel must still say what the formula says.
Shared Share(const char* formula, const char* sizes, const char* schedule, const Target& target,
             std::optional<int64_t> stream_bytes) {
  FormulaKernel k = KernelOf(formula, sizes);
  Scheduler s(*k.graph, k.sink, target);
  EXPECT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus()) << schedule;
  const auto look = [](const UOp* sink) {
    Shared found;
    absl::flat_hash_set<const UOp*> written;
    const std::vector<const UOp*> order = Toposort(sink);
    for (const UOp* u : order) {
      found.buffers += u->op == Op::kScratch ? 1 : 0;
      if (u->op == Op::kStore && u->src(0)->src(0)->op == Op::kParam) {
        written.insert(u->src(0)->src(0));
      }
    }
    for (const UOp* u : order) {
      found.in_output |= u->op == Op::kLoad && written.contains(u->src(0)->src(0));
    }
    return found;
  };
  Shared shared;
  PassOptions options;
  options.verify = true;
  options.stream_bytes = stream_bytes;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    if (pass.name != "share-values") return;
    shared = look(after);
    shared.buffers -= look(before).buffers;
    shared.in_output &= !look(before).in_output;
  };
  absl::StatusOr<LoweredKernel> lowered = Lower(*k.graph, s.kernel(), target, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (!lowered.ok()) return {};
  for (const KernelParam& p : lowered->params) EXPECT_NE(p.read, p.written);
  const KernelBuffers expected(k.sink);
  const KernelBuffers actual(k.sink);
  EXPECT_EQ(Interpret(k.sink, expected.Views()), absl::OkStatus());
  EXPECT_EQ(Interpret(lowered->sink, actual.Views()), absl::OkStatus());
  EXPECT_EQ(actual.Compare(expected, ToleranceFor(k.sink)), "") << formula << " | " << schedule;
  return shared;
}

// With outputs that nothing may wait in.
int Buffers(const char* formula, const char* sizes, const char* schedule,
            const Target& target = Avx512Target()) {
  const Shared shared = Share(formula, sizes, schedule, target, 1);
  EXPECT_FALSE(shared.in_output);
  return shared.buffers;
}

TEST(ShareValuesTest, TheExponentialsOfASoftmaxAreKept) {
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", ""), 1);
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", kRow), 1);
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", "UNROLL(0,4) UNROLL(1,4) UPCAST(1,4) THREAD(0,2)"),
            1);
}

TEST(ShareValuesTest, RowsInRegistersAreDimensions) {
  EXPECT_EQ(Buffers(kSoftmax, "i=16,j=8,k=8", "UPCAST(0,4)"), 1);
  EXPECT_EQ(Buffers(kSoftmax, "i=16,j=8,k=8", "UPCAST(0,16)"), 1);
  // The axis of rows stands behind those of the store and ahead of those of the sum.
  EXPECT_EQ(
      Buffers(kSoftmax, "i=6,j=64,k=64", "UNROLL(0,16) UNROLL(1,16) UPCAST(1,16) UPCAST(0,2)"), 1);
}

TEST(ShareValuesTest, MasksArePartOfTheValue) {
  EXPECT_EQ(Buffers(kSoftmax, "i=3,j=61,k=61",
                    "PADTO(1,16) PADTO(2,16) PADTO(3,16) UNROLL(0,16) UNROLL(1,16) UPCAST(1,16)"),
            1);
}

TEST(ShareValuesTest, TwoReductionsAndTheirReaderShareOneBuffer) {
  EXPECT_EQ(Buffers("Y[i,j] = exp(X[i,j])/sum[k](exp(X[i,k]))*max[l](exp(X[i,l]))",
                    "i=5,j=16,k=16,l=16", ""),
            1);
}

TEST(ShareValuesTest, DifferentValuesHaveDifferentBuffers) {
  EXPECT_EQ(Buffers("Y[i,j] = exp(X[i,j])*sin(X[i,j])/(sum[k](exp(X[i,k]))+sum[l](sin(X[i,l])))",
                    "i=5,j=16,k=16,l=16", ""),
            2);
}

TEST(ShareValuesTest, CheapValuesAreComputedAgain) {
  EXPECT_EQ(Buffers("m[i] = sum[j](X[i,j])*0.1; Y[i,j] = (X[i,j]-m[i])*sum[k]((X[i,k]-m[i])*2.0)",
                    "i=5,j=16,k=16", ""),
            0);
}

TEST(ShareValuesTest, LoopsThatAreCutInOtherWaysDoNotMatch) {
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", "UNROLL(1,16) UPCAST(1,8)"), 0);
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", "UNROLL(1,16)"), 0);
}

TEST(ShareValuesTest, OtherElementsAreOtherValues) {
  EXPECT_EQ(Buffers("Y[i,j] = exp(X[i,31-j])/sum[k](exp(X[i,k]))", "i=5,j=32,k=32", ""), 0);
  EXPECT_EQ(Buffers("Y[i,j] = exp(X[i,j]*2.0)/sum[k](exp(X[i,k]))", "i=5,j=32,k=32", ""), 0);
}

TEST(ShareValuesTest, ABufferThatLeavesTheCacheIsNotMade) {
  Target small = Avx512Target();
  small.l2_bytes = 4 * 64 * 4;
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", kRow, small), 1);
  small.l2_bytes -= 4;
  EXPECT_EQ(Buffers(kSoftmax, "i=6,j=64,k=64", kRow, small), 0);
}

TEST(ShareValuesTest, ValuesWaitInTheOutput) {
  for (const char* schedule : {"", kRow, "UPCAST(0,2)", "THREAD(0,2)",
                               "UNROLL(0,16) UNROLL(1,16) UPCAST(1,16) UPCAST(0,2)"}) {
    const Shared shared = Share(kSoftmax, "i=6,j=64,k=64", schedule, Avx512Target(), {});
    EXPECT_TRUE(shared.in_output) << schedule;
    EXPECT_EQ(shared.buffers, 0) << schedule;
  }
  // One value does, the other has a buffer.
  const Shared two =
      Share("Y[i,j] = exp(X[i,j])*sin(X[i,j])/(sum[k](exp(X[i,k]))+sum[l](sin(X[i,l])))",
            "i=5,j=16,k=16,l=16", "", Avx512Target(), {});
  EXPECT_TRUE(two.in_output);
  EXPECT_EQ(two.buffers, 1);
}

TEST(ShareValuesTest, OutputsInWhichNothingCanWait) {
  const auto scratch = [](const char* formula, const char* sizes, const char* schedule = "") {
    const Shared shared = Share(formula, sizes, schedule, Avx512Target(), {});
    return !shared.in_output && shared.buffers == 1;
  };
  // Masks on the store.
  EXPECT_TRUE(
      scratch(kSoftmax, "i=3,j=61,k=61",
              "PADTO(1,16) PADTO(2,16) PADTO(3,16) UNROLL(0,16) UNROLL(1,16) UPCAST(1,16)"));
  // Another type.
  EXPECT_TRUE(scratch("Y[i,j] = i32(exp(X[i,j])/sum[k](exp(X[i,k])))", "i=5,j=16,k=16"));
  // Read by both, stored by neither but in the sums: the second loop has no element of its own.
  EXPECT_TRUE(scratch("Y[i] = sum[k](exp(X[i,k]))/max[l](exp(X[i,l]))", "i=5,k=16,l=16"));
  // Too large for the caches.
  const Shared streamed = Share(kSoftmax, "i=6,j=64,k=64", "", Avx512Target(), 6 * 64 * 4);
  EXPECT_FALSE(streamed.in_output);
  EXPECT_EQ(streamed.buffers, 1);
}

// Two loops over V = sqrt(sqrt(x[n] + r1)), as linearize makes them.
struct TwoLoops {
  UOpGraph g;
  const UOp* x = Param(g, kF32Type, 0, 16);
  const UOp* y = Param(g, kF32Type, 1, 16);
  const UOp* sum = Index(g, Register(g, kF32Type, 0, 1), IndexConst(g, 0));
  const UOp* bias = Index(g, Register(g, kF32Type, 1, 1), IndexConst(g, 0));

  const UOp* Number(double v) { return FloatConst(g, kF32Type, v); }
  const UOp* Value(const UOp* n, const UOp* added) {
    const UOp* at = Load(g, Index(g, x, n));
    return Unary(g, Op::kSqrt, Unary(g, Op::kSqrt, Add(g, at, added)));
  }
  const UOp* Loop(const UOp* range, const UOp* statement) {
    return g.Make(Op::kLoop, kVoidType, {range, statement});
  }
  // Whether the pass changes a phase of these statements.
  bool Shares(std::vector<const UOp*> statements) {
    const UOp* sink = Sink(g, {{g.Make(Op::kPhase, kVoidType, statements)}});
    EXPECT_TRUE(VerifyLowered(sink).ok()) << VerifyLowered(sink);
    const UOp* shared = ShareValues(g, sink, Avx512Target(), /*stream_bytes=*/1 << 20);
    EXPECT_TRUE(VerifyLowered(shared).ok()) << VerifyLowered(shared);
    return shared != sink;
  }
};

TEST(ShareValuesTest, WhatIsWrittenInBetweenIsNotTheSame) {
  TwoLoops t;
  UOpGraph& g = t.g;
  const UOp* k = Range(g, 16, 0, AxisType::kReduce);
  const UOp* j = Range(g, 16, 1, AxisType::kLoop);
  const UOp* start = Store(g, t.bias, t.Number(1));
  const UOp* zero = Store(g, t.sum, t.Number(0));
  const UOp* added = Load(g, t.bias);
  const UOp* first = t.Loop(k, Store(g, t.sum, Add(g, Load(g, t.sum), t.Value(k, added))));
  const UOp* second = t.Loop(j, Store(g, Index(g, t.y, j), t.Value(j, added)));
  EXPECT_TRUE(t.Shares({start, zero, first, second}));
  const UOp* change = Store(g, t.bias, Load(g, t.sum));
  EXPECT_FALSE(t.Shares({start, zero, first, change, second}));
  // In the first loop itself, behind the value.
  const UOp* changing = g.Make(Op::kLoop, kVoidType, {k, first->src(1), change});
  EXPECT_FALSE(t.Shares({start, zero, changing, second}));
  // A sum that is still being made.
  const UOp* running = Load(g, t.sum);
  const UOp* own = t.Loop(k, Store(g, t.sum, Add(g, running, t.Value(k, running))));
  EXPECT_FALSE(t.Shares({zero, own, t.Loop(j, Store(g, Index(g, t.y, j), t.Value(j, running)))}));
}

TEST(ShareValuesTest, WhatThePhaseWritesIsNotTheSame) {
  TwoLoops t;
  UOpGraph& g = t.g;
  const UOp* k = Range(g, 16, 0, AxisType::kLoop);
  const UOp* j = Range(g, 16, 1, AxisType::kLoop);
  const UOp* first = t.Loop(k, Store(g, Index(g, t.x, k), t.Value(k, t.Number(1))));
  const UOp* second = t.Loop(j, Store(g, Index(g, t.y, j), t.Value(j, t.Number(1))));
  EXPECT_FALSE(t.Shares({first, second}));
}

TEST(ShareValuesTest, OutputsThatOthersTouchOrThatIterationsShare) {
  TwoLoops t;
  UOpGraph& g = t.g;
  const UOp* z = Param(g, kF32Type, 2, 16);
  const UOp* k = Range(g, 16, 0, AxisType::kLoop);
  const UOp* j = Range(g, 16, 1, AxisType::kLoop);
  const UOp* first = t.Loop(k, Store(g, Index(g, z, k), t.Value(k, t.Number(1))));
  const auto in_output = [&](std::vector<const UOp*> statements) {
    const UOp* sink = Sink(g, {{g.Make(Op::kPhase, kVoidType, statements)}});
    const UOp* shared = ShareValues(g, sink, Avx512Target(), 1 << 20);
    EXPECT_NE(shared, sink);
    bool reads = false;
    for (const UOp* u : Toposort(shared)) reads |= u->op == Op::kLoad && u->src(0)->src(0) == t.y;
    return reads;
  };
  const UOp* value = t.Value(j, t.Number(1));
  const UOp* second = t.Loop(j, Store(g, Index(g, t.y, j), value));
  EXPECT_TRUE(in_output({first, second}));
  const UOp* again = t.Loop(k, Store(g, Index(g, t.y, k), t.Number(0)));
  EXPECT_FALSE(in_output({again, first, second}));
  const UOp* half = g.Make(Op::kFloorDiv, kIndexType, {j, IndexConst(g, 2)});
  EXPECT_FALSE(in_output({first, t.Loop(j, Store(g, Index(g, t.y, half), value))}));
  const UOp* none = IndexConst(g, 3);
  EXPECT_FALSE(in_output({first, t.Loop(j, Store(g, Index(g, t.y, none), value))}));
}

TEST(ShareValuesTest, ThreadsHaveNoMemoryInCommon) {
  TwoLoops t;
  UOpGraph& g = t.g;
  const UOp* z = Param(g, kF32Type, 2, 16);
  for (const AxisType type : {AxisType::kLoop, AxisType::kThread}) {
    const UOp* k = Range(g, 16, 0, type);
    const UOp* j = Range(g, 16, 1, type);
    const UOp* first = t.Loop(k, Store(g, Index(g, z, k), t.Value(k, t.Number(1))));
    const UOp* second = t.Loop(j, Store(g, Index(g, t.y, j), t.Value(j, t.Number(1))));
    EXPECT_EQ(t.Shares({first, second}), type == AxisType::kLoop);
  }
}

TEST(ShareValuesTest, MachineCode) {
  std::unique_ptr<CpuDevice> device = std::move(*CpuDevice::Create());
  const Target target = HereWithShapeOf(Avx512Target());
  for (const char* schedule : {"", kRow, "UNROLL(1,4) UPCAST(1,4)", "UPCAST(0,2) THREAD(0,3)"}) {
    FormulaKernel k = KernelOf(kSoftmax, "i=6,j=64,k=64");
    Scheduler s(*k.graph, k.sink, target);
    ASSERT_EQ(s.ApplyAll(*ParseActions(schedule)), absl::OkStatus());
    EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, *device), "");
  }
}

}  // namespace
}  // namespace quern
