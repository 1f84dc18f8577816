#include "codegen/emit_matrix.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/matrix_instructions.h"

namespace quern {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

unsigned LanesOf(Value* v) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return type == nullptr ? 1 : type->getNumElements();
}

Value* Slice(IRBuilderBase& b, Value* v, unsigned first, unsigned count) {
  if (LanesOf(v) == count) return v;
  llvm::SmallVector<int, 64> mask;
  for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(first + i));
  return b.CreateShuffleVector(v, mask);
}

// An operand as 32-bit lanes, each a whole group of elements.
Value* AsGroups(IRBuilderBase& b, Value* v, unsigned lanes, unsigned group) {
  if (LanesOf(v) == group) {
    return b.CreateVectorSplat(lanes, b.CreateBitCast(v, b.getInt32Ty()));
  }
  return b.CreateBitCast(v, llvm::FixedVectorType::get(b.getInt32Ty(), lanes));
}

}  // namespace

Value* EmitInterleave(IRBuilderBase& b, std::span<Value* const> parts) {
  const unsigned lanes = LanesOf(parts[0]);
  const auto count = static_cast<unsigned>(parts.size());
  llvm::Type* element = parts[0]->getType()->getScalarType();
  if (lanes == 1) {
    Value* v = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, count));
    for (unsigned i = 0; i < count; ++i) v = b.CreateInsertElement(v, parts[i], uint64_t{i});
    return v;
  }
  if (count == 1) return parts[0];
  // Pairs first: (0, 2) and (1, 3) of four, so that each step is a plain interleave of two.
  const unsigned half = count / 2;
  llvm::SmallVector<Value*, 4> even;
  llvm::SmallVector<Value*, 4> odd;
  for (unsigned i = 0; i < count; ++i) (i % 2 == 0 ? even : odd).push_back(parts[i]);
  Value* low = half == 1 ? even[0] : EmitInterleave(b, {even.data(), even.size()});
  Value* high = half == 1 ? odd[0] : EmitInterleave(b, {odd.data(), odd.size()});
  const unsigned width = LanesOf(low);
  llvm::SmallVector<int, 256> mask;
  for (unsigned i = 0; i < width; ++i) {
    mask.push_back(static_cast<int>(i));
    mask.push_back(static_cast<int>(width + i));
  }
  return b.CreateShuffleVector(low, high, mask);
}

Value* EmitMatrix(IRBuilderBase& b, const UOp* u, Value* accumulator, Value* a, Value* b_operand) {
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(u->arg.a)];
  const auto group = static_cast<unsigned>(m.group);
  const auto step = static_cast<unsigned>(m.lanes);
  const unsigned lanes = LanesOf(accumulator);
  Value* a_groups = AsGroups(b, a, lanes, group);
  Value* b_groups = AsGroups(b, b_operand, lanes, group);
  llvm::SmallVector<Value*, 8> parts;
  for (unsigned first = 0; first < lanes; first += step) {
    Value* sum = Slice(b, accumulator, first, step);
    Value* x = Slice(b, a_groups, first, step);
    Value* y = Slice(b, b_groups, first, step);
    if (m.name == "vdpbf16ps") {
      llvm::Type* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), step * group);
      parts.push_back(
          b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                            {sum, b.CreateBitCast(x, pairs), b.CreateBitCast(y, pairs)}));
    } else {
      // LLVM 22 takes the bytes as bytes.
      llvm::Type* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), step * group);
      parts.push_back(
          b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {},
                            {sum, b.CreateBitCast(x, bytes), b.CreateBitCast(y, bytes)}));
    }
  }
  while (parts.size() > 1) {
    llvm::SmallVector<Value*, 8> next;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      llvm::SmallVector<int, 128> mask;
      const unsigned both = 2 * LanesOf(parts[i]);
      for (unsigned k = 0; k < both; ++k) mask.push_back(static_cast<int>(k));
      next.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], mask));
    }
    QUERN_CHECK_MSG(parts.size() % 2 == 0, "a power of two of registers");
    parts.swap(next);
  }
  return parts[0];
}

}  // namespace quern
