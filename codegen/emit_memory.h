#ifndef QUERN_CODEGEN_EMIT_MEMORY_H_
#define QUERN_CODEGEN_EMIT_MEMORY_H_

#include "codegen/access.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace quern {

/// The values that an access needs. `pointer` is the place of `access.base` (of the buffer itself
/// for a gather); `offsets` the lanes of a gather; `gate` the gate; `zeros` a place of at least
/// 4096 readable zero bytes, 64-byte aligned, that stands in where a scalar gate is false.
struct AccessValues {
  llvm::Value* pointer = nullptr;
  llvm::Value* offsets = nullptr;
  llvm::Value* gate = nullptr;
  llvm::Value* zeros = nullptr;
  int64_t alignment = 1;  ///< bytes, of `pointer`
  bool stream = false;    ///< past the caches: a store of whole, aligned cache lines
};

/// Reads `dtype` (the dtype of the load, lanes included).
llvm::Value* EmitLoad(llvm::IRBuilderBase& builder, const Access& access, DType dtype,
                      const AccessValues& values);

/// Asks for the cache lines that a load of `dtype` will read `distance` elements further on.
void EmitPrefetch(llvm::IRBuilderBase& builder, DType dtype, int64_t distance,
                  const AccessValues& values);

/// Asks for the cache line of element `offset` of a buffer.
void EmitPrefetch(llvm::IRBuilderBase& builder, DType dtype, llvm::Value* buffer,
                  llvm::Value* offset);

/// Writes `value` of `dtype`. A scalar gate must have been turned into a branch by the caller.
void EmitStore(llvm::IRBuilderBase& builder, const Access& access, DType dtype,
               const AccessValues& values, llvm::Value* value);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_MEMORY_H_
