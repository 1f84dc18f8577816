#ifndef QUERN_CODEGEN_LOWER_H_
#define QUERN_CODEGEN_LOWER_H_

#include <span>

#include "absl/status/statusor.h"
#include "codegen/lowered_kernel.h"
#include "codegen/pass_registry.h"

namespace quern {

/// The passes from a scheduled kernel AST to statements, in order.
std::span<const Pass> LoweringPasses();

/// Lowers a scheduled kernel AST. Errors: an invalid kernel; a pass that leaves an invalid graph
/// (with options.verify).
absl::StatusOr<LoweredKernel> Lower(UOpGraph& graph, const UOp* sink, const Target& target,
                                    const PassOptions& options = {});

/// The parameters of a kernel AST or of lowered statements, by slot.
std::vector<KernelParam> CollectParams(const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_LOWER_H_
