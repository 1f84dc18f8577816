#ifndef QUERN_CODEGEN_EMIT_TILE_H_
#define QUERN_CODEGEN_EMIT_TILE_H_

#include "codegen/access.h"

namespace llvm {
class Function;
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace quern {

// Tile registers of x86's AMX. LLVM's code generator configures them where a function begins and
// releases them where it ends, and keeps accumulators in them over a loop.

/// A matrix whose rows lie `access.stride` elements apart, into a tile register. `pointer` is its
/// first element.
llvm::Value* EmitTileLoad(llvm::IRBuilderBase& builder, const Access& access, DType dtype,
                          llvm::Value* pointer);

/// A kTile node on an accumulator in a vector and factors in tile registers.
llvm::Value* EmitTile(llvm::IRBuilderBase& builder, const UOp* u, llvm::Value* accumulator,
                      llvm::Value* a, llvm::Value* b);

/// What is read from accumulators after a loop is read there, not in each iteration.
void SinkTileReads(llvm::Function& function);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_TILE_H_
