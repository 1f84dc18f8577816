// Chains of statements that become one kernel: which ones, how they are lowered and scheduled.
#include "tensor/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/contract_scratch.h"
#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/temporaries.h"
#include "rewrite/verify.h"
#include "tests/unit/group_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

const Target kWide = Avx512Target(2);

// Elements of the scratch buffers with slots below `slots`.
int64_t ScratchElements(const UOp* sink, int64_t slots = 1000) {
  int64_t elements = 0;
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kScratch && u->slot() < slots) elements += u->buffer_size();
  }
  return elements;
}

// The kernel after one pass.
const UOp* After(UOpGraph& g, const UOp* kernel, std::string_view pass) {
  const UOp* found = nullptr;
  PassOptions options;
  options.verify = true;
  options.trace = [&](const Pass& p, const UOp*, const UOp* after, double) {
    if (p.name == pass) found = after;
  };
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, kernel, kWide, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return found;
}

size_t Kernels(const char* formula, const char* sizes, NotationOptions options = {}) {
  EXPECT_EQ(ParseSizes(sizes, options), absl::OkStatus());
  const absl::StatusOr<Program> program = ParseNotation(formula, options);
  EXPECT_TRUE(program.ok()) << program.status();
  for (const KernelInfo& k : program->kernels) EXPECT_EQ(VerifyKernel(k.sink), absl::OkStatus());
  return program->kernels.size();
}

TEST(GroupsTest, LargeIntermediatesOfProductsStayInOneKernel) {
  EXPECT_EQ(Kernels(kAttention, "h=8,i=512,j=512,d=64"), 1u);
  EXPECT_EQ(Kernels(kAttention, "h=1,i=4096,j=4096,d=64"), 1u);
  EXPECT_EQ(Kernels(kPerceptron, "i=4096,c=128,k=512,o=128"), 1u);
  EXPECT_EQ(Kernels("A[i,k] = sum[c](X[i,c]*U[c,k]); B[i,l] = sum[k](A[i,k]*V[k,l]); "
                    "C[i,o] = sum[l](B[i,l]*W[l,o])",
                    "i=4096,c=64,k=256,l=256,o=64"),
            1u);
}

TEST(GroupsTest, OthersBecomeKernels) {
  NotationOptions off;
  off.groups = false;
  EXPECT_EQ(Kernels(kAttention, "h=8,i=512,j=512,d=64", off), 3u);
  // What fits a cache loses nothing between kernels.
  EXPECT_EQ(Kernels(kAttention, "h=1,i=64,j=64,d=64"), 3u);
  // Few rows do not pay for packing the keys and values of a head.
  EXPECT_EQ(Kernels(kAttention, "h=16,i=64,j=256,d=64"), 3u);
  // Weights of 64 MiB would come from memory for each block of rows.
  EXPECT_EQ(Kernels(kPerceptron, "i=4096,c=2048,k=4096,o=2048"), 2u);
  // Rows of which a few do not fit.
  EXPECT_EQ(Kernels(kPerceptron, "i=64,c=16,k=65536,o=16"), 2u);
  // The second product reads the first one's columns.
  EXPECT_EQ(Kernels("A[i,k] = sum[c](X[i,c]*U[c,k]); B[k,o] = sum[i](A[i,k]*W[i,o])",
                    "i=4096,c=64,k=512,o=64"),
            2u);
  // Bytes are multiplied by matrix instructions in kernels of their own.
  NotationOptions bytes;
  bytes.dtypes = {{"X", DType{ScalarType::kU8}}, {"U", kI8Type}};
  EXPECT_EQ(Kernels("H[i,k] = sum[c](i32(X[i,c])*i32(U[c,k])); Y[i,o] = sum[k](f32(H[i,k])*W[k,o])",
                    "i=4096,c=128,k=512,o=128", bytes),
            2u);
  // Somebody wants to see the scores.
  NotationOptions outputs;
  outputs.outputs = {"S"};
  EXPECT_EQ(Kernels(kAttention, "h=8,i=512,j=512,d=64", outputs), 2u);
  // Two others read them.
  EXPECT_EQ(Kernels("S[i,j] = sum[d](Q[i,d]*K[j,d]); A[i,e] = sum[j](S[i,j]*U[j,e]); "
                    "B[i,e] = sum[j](S[i,j]*V[j,e])",
                    "i=1024,j=1024,d=64,e=64"),
            3u);
}

TEST(GroupsTest, StoresShareTheLoopsOfTheLastStatement) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=3,j=5,d=7");
  ASSERT_EQ(k.sink->source_count, 4u);
  const std::vector<const UOp*> shared = SharedRanges(k.sink);
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(shared[0]->range_size(), 2);
  EXPECT_EQ(shared[1]->range_size(), 3);
  EXPECT_EQ(shared[0]->range_axis(), 0);
  EXPECT_EQ(shared[1]->range_axis(), 1);
  // Of another row: no loop over rows is shared.
  const FormulaKernel other = GroupKernelOf(
      "A[i,k] = X[i,k]*2.0; B[i,k] = pad(A[i-1,k]) + A[i,k]; C[i,o] = sum[k](B[i,k]*W[k,o])",
      "i=8,k=4,o=4");
  EXPECT_TRUE(SharedRanges(other.sink).empty());
}

TEST(GroupsTest, TemporariesShrinkToWhatOneIterationUses) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=16,j=48,d=8");
  // One row of scores, one of weights, one maximum.
  EXPECT_EQ(ScratchElements(After(*k.graph, k.sink, "contract")), 48 + 48 + 1);
  const UOp* linear = After(*k.graph, k.sink, "contract");
  EXPECT_THAT(PseudoCode(linear), HasSubstr("for i0 in 2:\n  for i1 in 16:\n"));
  // The columns of the scores outside a block of four rows: four rows of each wait.
  Scheduler s(*k.graph, k.sink, kWide);
  ASSERT_EQ(s.Apply({ActionKind::kLocal, 1, 4}), absl::OkStatus());
  EXPECT_EQ(ScratchElements(After(*k.graph, s.kernel(), "contract"), 3), 4 * (48 + 48 + 1));
}

// s[i] is used again by the next k: all of it must last.
TEST(GroupsTest, WhatAnOuterLoopComesBackToLasts) {
  UOpGraph g;
  const UOp* k = Range(g, 3, 0, AxisType::kLoop);
  const UOp* i = Range(g, 4, 1, AxisType::kLoop);
  const UOp* s = Scratch(g, kF32Type, 0, 4);
  const UOp* y = Param(g, kF32Type, 0, 4);
  const UOp* before = Load(g, Index(g, s, i, Lt(g, IndexConst(g, 0), k)));
  const UOp* add = Store(g, Index(g, s, i), Add(g, before, FloatConst(g, kF32Type, 1)));
  const UOp* copy = Store(g, Index(g, y, i), Load(g, Index(g, s, i)));
  const auto sink = [&](const UOp* outer, const UOp* inner) {
    const UOp* loop = g.Make(Op::kLoop, kVoidType, {inner, add, copy});
    const UOp* phase = g.Make(Op::kPhase, kVoidType, {g.Make(Op::kLoop, kVoidType, {outer, loop})});
    return Sink(g, std::vector<const UOp*>{phase});
  };
  EXPECT_EQ(ContractScratch(g, sink(k, i)), sink(k, i));
  EXPECT_EQ(ScratchElements(ContractScratch(g, sink(i, k))), 1);
}

// A sum that runs outside the rows waits for all of them: the rows are not shared any more.
TEST(GroupsTest, ReductionsOutsideTheRowsKeepAllRows) {
  const FormulaKernel k =
      GroupKernelOf("T[h,i,k] = X[h,i,k]*2.0; Y[h,i] = sum[k](T[h,i,k])", "h=2,i=6,k=4");
  Scheduler s(*k.graph, k.sink, kWide);
  const int sum = s.reduce_axes()[0];
  ASSERT_EQ(s.Apply({ActionKind::kSwap, 1, sum}), absl::OkStatus());
  const UOp* linear = After(*k.graph, s.kernel(), "contract");
  EXPECT_EQ(ScratchElements(linear), 6 * 4);
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), (*device)->target(), **device), "");
}

TEST(GroupsTest, WhatRowsShareIsPackedOutsideThem) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=32,j=64,d=16");
  Scheduler s(*k.graph, k.sink, kWide);
  ApplyHeuristic(s);
  const std::string code = PseudoCode(After(*k.graph, s.kernel(), "contract"));
  // Keys and values of a head before the loop over blocks of rows.
  const size_t rows = code.find("(LOCAL)");
  const size_t keys = code.find("= p1["), values = code.find("= p2[");
  ASSERT_NE(rows, std::string::npos) << code;
  ASSERT_NE(keys, std::string::npos) << code;
  ASSERT_NE(values, std::string::npos) << code;
  EXPECT_LT(keys, rows) << code;
  EXPECT_LT(values, rows) << code;
}

TEST(GroupsTest, ThreadsAreRefusedOnLoopsThatAreNotShared) {
  const FormulaKernel k = GroupKernelOf(kAttention, "h=2,i=16,j=48,d=8");
  Scheduler s(*k.graph, k.sink, kWide);
  EXPECT_EQ(Scheduler(s).Apply({ActionKind::kThread, 0, 2}), absl::OkStatus());
  EXPECT_EQ(Scheduler(s).Apply({ActionKind::kThread, 1, 2}), absl::OkStatus());
  for (size_t axis = 2; axis < s.axes().size(); ++axis) {
    if (s.axes()[axis].reduce) continue;
    EXPECT_THAT(std::string(s.Apply({ActionKind::kThread, static_cast<int>(axis), 2}).message()),
                HasSubstr("is not an axis of every output"));
  }
  // Blocks of a sum are those of one store.
  ASSERT_EQ(s.Apply({ActionKind::kGroupTop, 0, 2}), absl::OkStatus());
  EXPECT_THAT(std::string(s.Apply({ActionKind::kThread, s.reduce_axes()[0], 2}).message()),
              HasSubstr("is not shared by all that use a temporary"));
  // An axis of every store, which two use differently.
  const FormulaKernel other = GroupKernelOf("A[i] = X[i]*2.0; B[i] = pad(A[i-1]) + A[i]", "i=8");
  Scheduler t(*other.graph, other.sink, kWide);
  EXPECT_FALSE(t.Apply({ActionKind::kThread, 0, 2}).ok());
}

TEST(GroupsTest, TheHeuristicTilesRowsColumnsAndBlocks) {
  const FormulaKernel k = KernelOf(kAttention, "h=8,i=512,j=512,d=64");
  Scheduler s(*k.graph, k.sink, kWide);
  std::vector<std::string_view> steps;
  ApplyHeuristic(s, [&](const HeuristicStep& step, size_t actions) {
    EXPECT_GT(actions, 0u) << step.name;
    steps.push_back(step.name);
  });
  EXPECT_EQ(steps.size(), GroupHeuristicSteps().size());
  EXPECT_EQ(s.axes()[0].type, AxisType::kThread);
  int local = 0, rows = 0, lanes = 0;
  for (const Axis& a : s.axes()) {
    local += a.type == AxisType::kLocal ? 1 : 0;
    rows += a.type == AxisType::kUpcast && a.size > 8 && a.size < 16 ? 1 : 0;
    lanes += a.type == AxisType::kUpcast && a.size == 32 ? 1 : 0;
  }
  EXPECT_EQ(local, 1);
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(lanes, 2);
  // Blocks of scores and weights stay in a second-level cache.
  const UOp* lowered = After(*k.graph, s.kernel(), "contract");
  EXPECT_LE(ScratchElements(lowered, 3) * 4, kWide.l2_bytes);
}

// Keys and values beyond the second-level cache: a panel of them is used for several tiles of rows.
TEST(GroupsTest, LargeOperandsGetBlocksOfTiles) {
  const FormulaKernel k = KernelOf(kAttention, "h=1,i=4096,j=4096,d=64");
  Scheduler s(*k.graph, k.sink, kWide);
  ApplyHeuristic(s);
  int local = 0;
  for (const Axis& a : s.axes()) local += a.type == AxisType::kLocal ? 1 : 0;
  EXPECT_EQ(local, 2) << ActionsToString(s.actions());
}

TEST(GroupsTest, AnySizeAndTargetIsRight) {
  const absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  for (const char* sizes : {"h=2,i=16,j=32,d=16", "h=3,i=7,j=33,d=17", "h=1,i=1,j=1,d=64",
                            "h=1,i=40,j=129,d=5", "h=2,i=64,j=48,d=64"}) {
    const FormulaKernel k = GroupKernelOf(kAttention, sizes);
    for (Target target : {(*device)->target(), Avx2Target(1), SseTarget(1)}) {
      Scheduler s(*k.graph, k.sink, target);
      ApplyHeuristic(s);
      EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), target, **device), "")
          << sizes << " " << target.name << " " << ActionsToString(s.actions());
    }
  }
  for (const char* sizes : {"i=16,c=32,k=64,o=32", "i=13,c=17,k=33,o=9"}) {
    const FormulaKernel k = GroupKernelOf(kPerceptron, sizes);
    Scheduler s(*k.graph, k.sink, (*device)->target());
    ApplyHeuristic(s);
    EXPECT_EQ(RunAgainstInterpreter(*k.graph, k.sink, s.kernel(), (*device)->target(), **device),
              "")
        << sizes << " " << ActionsToString(s.actions());
  }
}

}  // namespace
}  // namespace quern
