#include "codegen/lower.h"

#include <algorithm>
#include <array>

#include "codegen/contract_scratch.h"
#include "codegen/decompose_float16.h"
#include "codegen/decompose_math.h"
#include "codegen/expand.h"
#include "codegen/guard_loops.h"
#include "codegen/linearize.h"
#include "codegen/matrix_tiles.h"
#include "codegen/prefetch.h"
#include "codegen/prefetch_panels.h"
#include "codegen/prefetch_rows.h"
#include "codegen/prefetch_sums.h"
#include "codegen/prefix_totals.h"
#include "codegen/share_values.h"
#include "codegen/split_loops.h"
#include "codegen/split_reductions.h"
#include "codegen/split_scans.h"
#include "codegen/stage.h"
#include "codegen/stream_stores.h"
#include "codegen/transpose_stores.h"
#include "codegen/two_stage.h"
#include "codegen/widen_reductions.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/simplify.h"
#include "rewrite/verify.h"

namespace quern {
namespace {

using Form = Pass::Form;

constexpr std::array<Pass, 22> kPasses = {{
    {"simplify", "apply the rule tables to the scheduled kernel",
     [](PassContext& c, const UOp* s) { return Simplify(c.graph, s, c.simplify); }, Form::kKernel},
    {"stage", "copy operands that a LOCAL tile reuses into fast memory",
     [](PassContext& c, const UOp* s) { return StageOperands(c.graph, s, c.target); },
     Form::kKernel},
    {"wide-sums", "accumulate f16 and bf16 in f32",
     [](PassContext& c, const UOp* s) { return WidenReductions(c.graph, s); }, Form::kKernel},
    {"float16", "compute f16 and bf16 in f32",
     [](PassContext& c, const UOp* s) { return DecomposeFloat16(c.graph, s); }, Form::kKernel},
    {"math", "write exp, log, sin, … as arithmetic",
     [](PassContext& c, const UOp* s) { return DecomposeMath(c.graph, s); }, Form::kKernel},
    {"two-stage", "make reductions over threads two phases",
     [](PassContext& c, const UOp* s) { return SplitPhases(c.graph, s); }, Form::kKernel},
    {"split-reductions", "nest reductions whose loops have output loops between them",
     [](PassContext& c, const UOp* s) { return SplitReductions(c.graph, s); }, Form::kKernel},
    {"scans", "take scans apart into carries over loops and prefixes in registers",
     [](PassContext& c, const UOp* s) { return SplitScans(c.graph, s); }, Form::kKernel},
    {"linearize", "turn the kernel into loops, accumulators and stores",
     [](PassContext& c, const UOp* s) { return Linearize(c.graph, s, c.target); },
     Form::kStatements},
    {"contract", "keep of temporaries only what one pass of the loops around them uses",
     [](PassContext& c, const UOp* s) { return ContractScratch(c.graph, s); }, Form::kStatements},
    {"share-values", "keep expensive values that a later loop would compute again",
     [](PassContext& c, const UOp* s) {
       const int64_t streamed = c.stream_bytes.value_or(StreamBytes(c.target));
       return ShareValues(c.graph, s, c.target, streamed);
     },
     Form::kStatements},
    {"guard-loops", "leave out what a window has beyond a border",
     [](PassContext& c, const UOp* s) {
       SimplifyOptions exact = c.simplify;
       exact.float_reassoc = false;  // As below.
       return GuardLoops(c.graph, Simplify(c.graph, s, exact), exact);
     },
     Form::kStatements},
    {"split-loops", "cut loops so that only their ends carry masks",
     [](PassContext& c, const UOp* s) {
       // The functions of "math" round by adding and taking away a constant: nothing may
       // reassociate that.
       SimplifyOptions exact = c.simplify;
       exact.float_reassoc = false;
       return SplitLoops(c.graph, Simplify(c.graph, s, exact), exact);
     },
     Form::kStatements},
    {"expand", "unroll register axes and make lanes vectors",
     [](PassContext& c, const UOp* s) { return Expand(c.graph, s, c.target); }, Form::kStatements},
    {"prefix-totals", "read the total of a vector off its prefix",
     [](PassContext& c, const UOp* s) { return SharePrefixTotals(c.graph, s); }, Form::kStatements},
    {"matrix-tiles", "multiply blocks of rows by instructions on tiles",
     [](PassContext& c, const UOp* s) { return UseMatrixTiles(c.graph, s, c.target); },
     Form::kStatements},
    {"transpose-stores", "turn tiles around that are stored across their lanes",
     [](PassContext& c, const UOp* s) { return TransposeStores(c.graph, s); }, Form::kStatements},
    {"prefetch", "fetch packed operands ahead of their use",
     [](PassContext& c, const UOp* s) { return MarkPrefetches(c.graph, s); }, Form::kStatements},
    {"prefetch-panels", "fetch the next packed panel while one is used",
     [](PassContext& c, const UOp* s) { return PrefetchPanels(c.graph, s, c.target); },
     Form::kStatements},
    {"prefetch-rows", "fetch the next row while one is computed",
     [](PassContext& c, const UOp* s) { return PrefetchRows(c.graph, s, c.target.l2_bytes); },
     Form::kStatements},
    {"prefetch-sums", "fetch the next tile of what is added to in memory",
     [](PassContext& c, const UOp* s) { return PrefetchSums(c.graph, s, c.target.l2_bytes); },
     Form::kStatements},
    {"stream", "write large outputs past the caches",
     [](PassContext& c, const UOp* s) {
       return MarkStreams(c.graph, s, c.stream_bytes.value_or(StreamBytes(c.target)));
     },
     Form::kStatements},
}};

KernelPhase MakePhase(UOpGraph& graph, const UOp* phase) {
  KernelPhase result;
  result.body = phase;
  result.once = (phase->arg.a & kOnceFlag) != 0;
  result.part_by_part = (phase->arg.a & kPartByPartFlag) != 0;
  if (phase->source_count == 1 && phase->src(0)->op == Op::kLoop &&
      phase->src(0)->src(0)->range_type() == AxisType::kThread) {
    const UOp* loop = phase->src(0);
    result.thread_range = loop->src(0);
    result.threads = loop->src(0)->range_size();
    result.body = graph.Make(Op::kPhase, kVoidType, loop->src().subspan(1));
  }
  std::vector<const UOp*> scratch;
  for (const UOp* u : Toposort(result.body)) {
    if (u->op == Op::kScratch) scratch.push_back(u);
  }
  std::vector<int64_t> offsets;
  result.scratch_bytes = LayOutScratch(scratch, offsets);
  return result;
}

}  // namespace

std::span<const Pass> LoweringPasses() { return kPasses; }

std::vector<KernelParam> CollectParams(const UOp* sink) {
  std::vector<KernelParam> params;
  auto find = [&](const UOp* buffer) -> KernelParam* {
    if (buffer->op != Op::kParam) return nullptr;
    for (KernelParam& p : params) {
      if (p.slot == buffer->slot()) return &p;
    }
    params.push_back({.slot = buffer->slot(),
                      .dtype = buffer->dtype,
                      .elements = buffer->buffer_size(),
                      .temporary = buffer->slot() >= kFirstTemporarySlot,
                      .kept = buffer->slot() >= kFirstPackedSlot});
    return &params.back();
  };
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kLoad) {
      if (KernelParam* p = find(u->src(0)->src(0))) p->read = true;
    } else if (u->op == Op::kStore) {
      if (KernelParam* p = find(u->src(0)->src(0))) p->written = true;
    }
  }
  std::sort(params.begin(), params.end(),
            [](const KernelParam& a, const KernelParam& b) { return a.slot < b.slot; });
  return params;
}

absl::StatusOr<LoweredKernel> Lower(UOpGraph& graph, const UOp* sink, const Target& target,
                                    const PassOptions& options) {
  // Whatever came before: no kernel runs whose accesses are not proved inside their buffers.
  if (absl::Status s = VerifyKernel(sink); !s.ok()) return s;
  PassContext context{graph, target, options.simplify, options.stream_bytes};
  absl::StatusOr<const UOp*> lowered = RunPasses(kPasses, context, sink, options);
  if (!lowered.ok()) return lowered.status();
  LoweredKernel kernel;
  kernel.sink = *lowered;
  kernel.params = CollectParams(*lowered);
  // What only the lowered form reads from an output it has written there itself.
  for (const KernelParam& given : CollectParams(sink)) {
    for (KernelParam& p : kernel.params) {
      if (p.slot == given.slot) p.read = given.read;
    }
  }
  for (const UOp* phase : (*lowered)->src()) {
    if (phase->source_count > 0) kernel.phases.push_back(MakePhase(graph, phase));
  }
  return kernel;
}

}  // namespace quern
