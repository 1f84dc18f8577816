#ifndef QUERN_CODEGEN_COMPILE_H_
#define QUERN_CODEGEN_COMPILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/lowered_kernel.h"
#include "rewrite/target.h"

namespace quern {

struct CompileOptions {
  bool keep_llvm_ir = false;  ///< fill CompiledKernel::llvm_ir (after the passes)
  bool keep_assembly = false;
  bool verify = false;           ///< run LLVM's verifier; broken IR is an internal error
  int64_t max_instructions = 0;  ///< more than about so many are not compiled; 0: no limit
};

/// Where the time went, in milliseconds.
struct CompileTimes {
  double emit_ms = 0;
  double passes_ms = 0;
  double machine_code_ms = 0;
  double total_ms() const { return emit_ms + passes_ms + machine_code_ms; }
};

/// An object file with one function per phase, named `symbols[i]`:
///
///     void symbol(void* const* params, void* scratch, int64_t thread)
struct CompiledKernel {
  std::string object;
  std::vector<std::string> symbols;
  std::string llvm_ir;
  std::string assembly;
  CompileTimes times;
};

/// Machine code for a CPU. Safe to call from several threads. Errors: an unknown LLVM target, or
/// IR that LLVM's verifier refuses (with `verify`), or code above the limit (kResourceExhausted).
absl::StatusOr<CompiledKernel> CompileForCpu(const LoweredKernel& kernel, const Target& target,
                                             const CompileOptions& options = {});

/// "22.1.8": part of every cache key.
std::string LlvmVersion();

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILE_H_
