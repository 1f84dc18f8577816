#ifndef QUERN_CODEGEN_EMIT_ARITHMETIC_H_
#define QUERN_CODEGEN_EMIT_ARITHMETIC_H_

#include <span>
#include <vector>

#include "rewrite/bounds.h"
#include "rewrite/uop.h"

namespace llvm {
class IRBuilderBase;
class LLVMContext;
class Type;
class Value;
}  // namespace llvm

namespace quern {

/// The LLVM type of a value. bool is i1, bf16 is i16 (its conversions are integer arithmetic, see
/// docs/semantics.md on subnormals), Index has `index_bits` bits.
llvm::Type* LlvmType(llvm::LLVMContext& context, DType dtype, unsigned index_bits = 64);
/// The same in memory: bool is i8.
llvm::Type* LlvmMemoryType(llvm::LLVMContext& context, DType dtype);

/// The constant node `u` as a value.
llvm::Value* EmitConst(llvm::IRBuilderBase& builder, const UOp* u);

/// 0, 1, 2, …, as 32-bit integers.
llvm::Value* EmitLanes(llvm::IRBuilderBase& builder, int lanes);

/// One elementwise operation on values that already have the types of `u`'s sources; for Index
/// operations all values have the same width. `nonnegative` says that both sources of an integer
/// division are known not to be negative.
llvm::Value* EmitElementwise(llvm::IRBuilderBase& builder, const UOp* u,
                             std::span<llvm::Value* const> sources, bool nonnegative);

/// EmitElementwise, with what is known of the values: divisions of what is not negative are
/// unsigned, and vectors of Index have 32 bits where nothing in them can pass 2^31.
llvm::Value* EmitBounded(llvm::IRBuilderBase& builder, const UOp* u,
                         std::vector<llvm::Value*> sources, BoundsAnalysis& bounds);

/// `a op b` for kAdd, kMul, kMax, kMin on values of `dtype`.
llvm::Value* EmitCombine(llvm::IRBuilderBase& builder, Op op, DType dtype, llvm::Value* a,
                         llvm::Value* b);

/// All lanes of a vector of `dtype` combined by `op`, as a scalar.
llvm::Value* EmitHorizontal(llvm::IRBuilderBase& builder, Op op, DType dtype, llvm::Value* vector);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_ARITHMETIC_H_
