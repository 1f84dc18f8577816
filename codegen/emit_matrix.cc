#include "codegen/emit_matrix.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

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

// Vectors of equal size, one after another; their number is a power of two.
Value* Join(IRBuilderBase& b, llvm::SmallVectorImpl<Value*>& parts) {
  while (parts.size() > 1) {
    QUERN_CHECK_MSG(parts.size() % 2 == 0, "a power of two of registers");
    llvm::SmallVector<Value*, 16> next;
    llvm::SmallVector<int, 128> mask;
    for (unsigned k = 0; k < 2 * LanesOf(parts[0]); ++k) mask.push_back(static_cast<int>(k));
    for (size_t i = 0; i < parts.size(); i += 2) {
      next.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], mask));
    }
    parts.assign(next.begin(), next.end());
  }
  return parts[0];
}

// `sum` and the products of groups that stand in 32-bit lanes.
Value* EmitInstruction(IRBuilderBase& b, const MatrixInstruction& m, Value* sum, Value* x,
                       Value* y) {
  const bool wide = m.lanes == 16;
  llvm::Type* element = b.getInt8Ty();  // LLVM 22 takes the bytes of VPDPBUSD as bytes.
  if (m.a == ScalarType::kBF16) element = b.getBFloatTy();
  if (m.a == ScalarType::kI16) element = b.getInt16Ty();
  llvm::Type* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(m.lanes * m.group));
  x = b.CreateBitCast(x, type);
  y = b.CreateBitCast(y, type);
  if (!Accumulates(m)) {
    const auto id =
        wide ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd;
    return b.CreateAdd(sum, b.CreateIntrinsic(id, {}, {x, y}));
  }
  if (m.a == ScalarType::kBF16) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {}, {sum, x, y});
  }
  const auto id =
      wide ? llvm::Intrinsic::x86_avx512_vpdpbusd_512 : llvm::Intrinsic::x86_avx512_vpdpbusd_256;
  return b.CreateIntrinsic(id, {}, {sum, x, y});
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

std::vector<Value*> EmitTransposed(IRBuilderBase& b, std::span<Value* const> rows) {
  // Each step interleaves vector i with vector i + n/2; after log2 n steps the lanes of all of
  // them, one after another, are the columns. (The perfect shuffle of Stone, 1971.)
  std::vector<Value*> vectors(rows.begin(), rows.end());
  const unsigned lanes = LanesOf(vectors[0]);
  // Lanes beyond a register are blocks of their own: LLVM takes many times as long for shuffles
  // that it has to split itself.
  constexpr unsigned kRegisterBits = 512;
  if (lanes * vectors[0]->getType()->getScalarSizeInBits() > kRegisterBits) {
    std::vector<Value*> pieces;
    for (unsigned first : {0u, lanes / 2}) {
      std::vector<Value*> part;
      for (Value* v : vectors) part.push_back(Slice(b, v, first, lanes / 2));
      const std::vector<Value*> block = EmitTransposed(b, part);
      pieces.insert(pieces.end(), block.begin(), block.end());
    }
    return pieces;
  }
  llvm::SmallVector<int, 64> low;
  llvm::SmallVector<int, 64> high;
  for (unsigned i = 0; i < lanes / 2; ++i) {
    low.push_back(static_cast<int>(i));
    low.push_back(static_cast<int>(lanes + i));
    high.push_back(static_cast<int>(lanes / 2 + i));
    high.push_back(static_cast<int>(lanes + lanes / 2 + i));
  }
  for (size_t done = 1; done < vectors.size(); done *= 2) {
    std::vector<Value*> next;
    const size_t half = vectors.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      next.push_back(b.CreateShuffleVector(vectors[i], vectors[i + half], low));
      next.push_back(b.CreateShuffleVector(vectors[i], vectors[i + half], high));
    }
    vectors.swap(next);
  }
  return vectors;
}

Value* EmitSlice(IRBuilderBase& b, std::span<Value* const> pieces, unsigned first, unsigned count) {
  const unsigned lanes = LanesOf(pieces[0]);
  if (count <= lanes) {
    QUERN_CHECK(first % lanes + count <= lanes);
    Value* piece = pieces[first / lanes];
    if (count == lanes) return piece;
    llvm::SmallVector<int, 64> mask;
    for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(first % lanes + i));
    return b.CreateShuffleVector(piece, mask);
  }
  llvm::SmallVector<Value*, 16> parts(pieces.begin() + first / lanes,
                                      pieces.begin() + (first + count) / lanes);
  return Join(b, parts);
}

bool IsColumn(const UOp* u) {
  return u->op == Op::kExtract && u->dtype.lanes > 1 && u->src(0)->op == Op::kInterleave;
}

unsigned GroupOf(const UOp* block) {
  return static_cast<unsigned>(std::max<int64_t>(1, block->arg.a));
}

Value* EmitMatrix(IRBuilderBase& b, const UOp* u, Value* accumulator, Value* a, Value* b_operand) {
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(u->arg.a)];
  const auto group = static_cast<unsigned>(m.group);
  const auto step = static_cast<unsigned>(m.lanes);
  const unsigned lanes = LanesOf(accumulator);
  Value* a_groups = AsGroups(b, a, lanes, group);
  Value* b_groups = AsGroups(b, b_operand, lanes, group);
  llvm::SmallVector<Value*, 16> parts;
  for (unsigned first = 0; first < lanes; first += step) {
    Value* sum = Slice(b, accumulator, first, step);
    Value* x = Slice(b, a_groups, first, step);
    Value* y = Slice(b, b_groups, first, step);
    parts.push_back(EmitInstruction(b, m, sum, x, y));
  }
  return Join(b, parts);
}

}  // namespace quern
