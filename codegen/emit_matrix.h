#ifndef QUERN_CODEGEN_EMIT_MATRIX_H_
#define QUERN_CODEGEN_EMIT_MATRIX_H_

#include <span>

#include "rewrite/uop.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace quern {

/// Vectors (or scalars) of one type, interleaved: lane 0 of each, then lane 1 of each, and so on.
llvm::Value* EmitInterleave(llvm::IRBuilderBase& builder, std::span<llvm::Value* const> parts);

/// A kMatrix node. An operand with no more lanes than the instruction's group is the same in every
/// lane of the accumulator.
llvm::Value* EmitMatrix(llvm::IRBuilderBase& builder, const UOp* u, llvm::Value* accumulator,
                        llvm::Value* a, llvm::Value* b);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_MATRIX_H_
