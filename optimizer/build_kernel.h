#ifndef QUERN_OPTIMIZER_BUILD_KERNEL_H_
#define QUERN_OPTIMIZER_BUILD_KERNEL_H_

#include "absl/status/statusor.h"
#include "codegen/compile.h"
#include "codegen/pass_registry.h"
#include "rewrite/graph.h"
#include "runtime/kernel_image.h"

namespace quern {

/// What a search refuses before it compiles; 0 means no limit.
struct BuildLimits {
  int64_t max_nodes = 0;           ///< of the lowered form
  int64_t max_instructions = 0;    ///< of the code, about
  int64_t max_register_bytes = 0;  ///< of one accumulator
  int64_t max_scratch_bytes = 0;   ///< per thread
  int max_lanes = 0;
};

/// Limits that leave out what cannot be fast on a target: accumulators of more than its
/// registers, more scratch memory than its caches, code beyond its instruction cache.
BuildLimits LimitsFor(const Target& target);

struct BuildOptions {
  BuildLimits limits;
  PassOptions passes;
  CompileOptions compile;
};

struct BuiltKernel {
  KernelImage image;
  std::string llvm_ir;
  std::string assembly;
  double lower_ms = 0;
  CompileTimes compile;
  int64_t nodes = 0;  ///< of the lowered form
  double total_ms() const { return lower_ms + compile.total_ms(); }
};

/// From a scheduled kernel AST to object code. Errors: an invalid kernel, a limit (with the code
/// kResourceExhausted), a failing pass or compiler.
absl::StatusOr<BuiltKernel> BuildKernel(UOpGraph& graph, const UOp* scheduled, const Target& target,
                                        const BuildOptions& options = {});

}  // namespace quern

#endif  // QUERN_OPTIMIZER_BUILD_KERNEL_H_
