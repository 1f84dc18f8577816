#ifndef QUERN_CODEGEN_EMIT_MATRIX_H_
#define QUERN_CODEGEN_EMIT_MATRIX_H_

#include <span>
#include <vector>

#include "rewrite/uop.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace quern {

/// Vectors (or scalars) of one type, interleaved: lane 0 of each, then lane 1 of each, and so on.
llvm::Value* EmitInterleave(llvm::IRBuilderBase& builder, std::span<llvm::Value* const> parts);

/// The same, as pieces: n vectors of m lanes are n·m lanes; `slice` lanes from lane `first` on are
/// one result. Done in steps of whole vectors, which is how a block is transposed in registers.
/// Numbers of vectors and lanes are powers of two.
std::vector<llvm::Value*> EmitTransposed(llvm::IRBuilderBase& builder,
                                         std::span<llvm::Value* const> rows);
/// Lanes [first, first + count) of pieces of equal size that follow one another.
llvm::Value* EmitSlice(llvm::IRBuilderBase& builder, std::span<llvm::Value* const> pieces,
                       unsigned first, unsigned count);

/// Whether a node is a column of a block that is transposed in registers: the block itself is never
/// one value.
bool IsColumn(const UOp* u);
/// How many neighbouring lanes move as one in such a block.
unsigned GroupOf(const UOp* block);

/// A kMatrix node. An operand with no more lanes than the instruction's group is the same in every
/// lane of the accumulator.
llvm::Value* EmitMatrix(llvm::IRBuilderBase& builder, const UOp* u, llvm::Value* accumulator,
                        llvm::Value* a, llvm::Value* b);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_MATRIX_H_
