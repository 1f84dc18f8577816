#ifndef QUERN_CODEGEN_EMIT_PHASE_H_
#define QUERN_CODEGEN_EMIT_PHASE_H_

#include <string>

#include "codegen/lowered_kernel.h"
#include "rewrite/target.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace quern {

/// Adds the function of one phase to a module:
///
///     void <name>(void* const* params, void* scratch, int64_t thread)
///
/// `params` in the order of kernel.params; `scratch` is this thread's own memory, 64-byte aligned.
llvm::Function* EmitPhase(llvm::Module& module, const LoweredKernel& kernel,
                          const KernelPhase& phase, const Target& target, const std::string& name);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_PHASE_H_
