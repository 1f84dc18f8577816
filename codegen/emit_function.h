#ifndef QUERN_CODEGEN_EMIT_FUNCTION_H_
#define QUERN_CODEGEN_EMIT_FUNCTION_H_

#include <string>

namespace llvm {
class BranchInst;
class Function;
class Module;
class Value;
}  // namespace llvm

namespace quern {

/// An empty `void name(void* const* params, void* scratch, int64_t thread)`. What it reaches
/// through `params` and `scratch` overlaps with nothing else that it can reach by name.
llvm::Function* MakePhaseFunction(llvm::Module& module, const std::string& name, int vector_bytes);

/// Marks the loop that ends with this branch as unrolled and vectorised already, as far as the
/// schedule wants.
void KeepAsScheduled(llvm::BranchInst& back);

/// 4096 readable zero bytes, 64-byte aligned: what is read where a gate is false.
llvm::Value* ZeroBytes(llvm::Module& module);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_FUNCTION_H_
