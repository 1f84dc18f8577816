#include "optimizer/build_kernel.h"

#include <algorithm>
#include <chrono>

#include "codegen/lower.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

absl::Status OverLimit(std::string_view what, int64_t value, int64_t limit) {
  return absl::ResourceExhaustedError(
      Concat("build: ", what, " ", value, " is above the limit ", limit));
}

absl::Status CheckLimits(const LoweredKernel& kernel, const std::vector<const UOp*>& nodes,
                         const BuildLimits& limits) {
  const auto count = static_cast<int64_t>(nodes.size());
  if (limits.max_nodes > 0 && count > limits.max_nodes) {
    return OverLimit("a lowered form of nodes", count, limits.max_nodes);
  }
  for (const UOp* u : nodes) {
    if (limits.max_lanes > 0 && u->dtype.lanes > limits.max_lanes) {
      return OverLimit("a vector of lanes", u->dtype.lanes, limits.max_lanes);
    }
    if (u->op != Op::kRegister || limits.max_register_bytes == 0) continue;
    const int64_t bytes = u->buffer_size() * std::max(1, ByteSize(u->dtype.scalar));
    if (bytes > limits.max_register_bytes) {
      return OverLimit("an accumulator of bytes", bytes, limits.max_register_bytes);
    }
  }
  for (const KernelPhase& phase : kernel.phases) {
    if (limits.max_scratch_bytes > 0 && phase.scratch_bytes > limits.max_scratch_bytes) {
      return OverLimit("scratch memory of bytes", phase.scratch_bytes, limits.max_scratch_bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

BuildLimits LimitsFor(const Target& target) {
  BuildLimits limits;
  limits.max_nodes = 6000;
  limits.max_instructions = 8000;
  limits.max_register_bytes = int64_t{1} * target.vector_bytes * target.vector_registers;
  limits.max_scratch_bytes = std::max(4 * target.l2_bytes, target.l3_bytes / 4);
  // A register tile that is transposed is one vector.
  limits.max_lanes = target.vector_bytes / 4 * target.vector_registers;
  return limits;
}

absl::StatusOr<BuiltKernel> BuildKernel(UOpGraph& graph, const UOp* scheduled, const Target& target,
                                        const BuildOptions& options) {
  using Clock = std::chrono::steady_clock;
  BuiltKernel built;
  const Clock::time_point start = Clock::now();
  absl::StatusOr<LoweredKernel> lowered = Lower(graph, scheduled, target, options.passes);
  if (!lowered.ok()) return lowered.status();
  const std::vector<const UOp*> nodes = Toposort(lowered->sink);
  built.nodes = static_cast<int64_t>(nodes.size());
  if (absl::Status s = CheckLimits(*lowered, nodes, options.limits); !s.ok()) return s;
  built.lower_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();

  CompileOptions compile = options.compile;
  compile.max_instructions = options.limits.max_instructions;
  absl::StatusOr<CompiledKernel> compiled = CompileForCpu(*lowered, target, compile);
  if (!compiled.ok()) return compiled.status();
  built.compile = compiled->times;
  built.llvm_ir = std::move(compiled->llvm_ir);
  built.assembly = std::move(compiled->assembly);
  built.image.object = std::move(compiled->object);
  for (const KernelParam& p : lowered->params) {
    built.image.params.push_back(
        {p.slot, p.dtype, p.elements, p.written, p.read, p.temporary, p.kept});
  }
  for (size_t i = 0; i < lowered->phases.size(); ++i) {
    const KernelPhase& phase = lowered->phases[i];
    built.image.phases.push_back(
        {compiled->symbols[i], phase.threads, phase.scratch_bytes, phase.once, phase.part_by_part});
  }
  return built;
}

}  // namespace quern
