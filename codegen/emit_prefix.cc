#include "codegen/emit_prefix.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include "codegen/emit_arithmetic.h"
#include "rewrite/evaluate.h"

namespace quern {
namespace {

using llvm::Value;

class PrefixEmitter {
 public:
  PrefixEmitter(llvm::IRBuilderBase& b, const UOp* u, llvm::Type* element, unsigned register_bits)
      : b_(b),
        op_(u->reduce_op()),
        dtype_(u->dtype),
        reverse_((u->arg.b & kScanReverse) != 0),
        register_bits_(register_bits),
        most_lanes_(register_bits / element->getScalarSizeInBits()) {
    const Scalar start = ReduceStart(op_, dtype_.scalar);
    identity_ = IsFloat(dtype_)
                    ? static_cast<llvm::Constant*>(llvm::ConstantFP::get(element, start.f))
                    : llvm::ConstantInt::getSigned(element, start.i);
  }

  Value* Inclusive(Value* v) {
    const unsigned lanes = LanesOf(v);
    if (lanes > most_lanes_ && lanes % 2 == 0) return Halves(v, lanes / 2);
    // Steps of 1, 2, 4, … lanes (Hillis and Steele, 1986).
    for (unsigned step = 1; step < lanes; step *= 2) {
      v = EmitCombine(b_, op_, dtype_, Shift(v, step), v);
    }
    return v;
  }

  // The lanes moved on, the identity in the first ones.
  Value* Shift(Value* v, unsigned step) {
    const unsigned lanes = LanesOf(v);
    Value* fill = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), identity_);
    // Of zeros LLVM makes VEXPANDPS, which waits for what its destination held before (seen on
    // Zen 5: docs/decisions.md).
    const bool expands = register_bits_ == kAvx512Bits && lanes == most_lanes_ && lanes <= 16;
    if (expands) fill = Hidden(fill);
    llvm::SmallVector<int, 64> mask;
    for (unsigned i = 0; i < lanes; ++i) {
      // Identities stand before the lanes, or behind them.
      const unsigned from = i + (reverse_ ? step : 2 * lanes - step);
      mask.push_back(static_cast<int>(!reverse_ && i >= step ? i - step : from));
    }
    return b_.CreateShuffleVector(v, fill, mask);
  }

 private:
  static constexpr unsigned kAvx512Bits = 512;

  // A constant that LLVM does not know.
  Value* Hidden(Value* constant) {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
    b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    auto* type = llvm::FunctionType::get(constant->getType(), {constant->getType()}, false);
    return b_.CreateCall(type, llvm::InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/false),
                         {constant});
  }

  static unsigned LanesOf(Value* v) {
    return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  }

  // Of more than a register: the second half begins with the last lane of the first.
  Value* Halves(Value* v, unsigned half) {
    llvm::SmallVector<int, 64> low;
    llvm::SmallVector<int, 64> high;
    llvm::SmallVector<int, 64> both;
    for (unsigned i = 0; i < half; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(half + i));
    }
    for (unsigned i = 0; i < 2 * half; ++i) both.push_back(static_cast<int>(i));
    Value* first = Inclusive(b_.CreateShuffleVector(v, reverse_ ? high : low));
    Value* second = Inclusive(b_.CreateShuffleVector(v, reverse_ ? low : high));
    Value* total = b_.CreateExtractElement(first, uint64_t{reverse_ ? 0 : half - 1});
    second = EmitCombine(b_, op_, dtype_, b_.CreateVectorSplat(half, total), second);
    return reverse_ ? b_.CreateShuffleVector(second, first, both)
                    : b_.CreateShuffleVector(first, second, both);
  }

  llvm::IRBuilderBase& b_;
  Op op_;
  DType dtype_;
  bool reverse_;
  unsigned register_bits_;
  unsigned most_lanes_;
  llvm::Constant* identity_ = nullptr;
};

}  // namespace

Value* EmitPrefix(llvm::IRBuilderBase& builder, const UOp* u, Value* vector, int register_bytes) {
  PrefixEmitter emitter(builder, u, vector->getType()->getScalarType(),
                        8 * static_cast<unsigned>(register_bytes));
  Value* prefix = emitter.Inclusive(vector);
  return (u->arg.b & kScanExclusive) != 0 ? emitter.Shift(prefix, 1) : prefix;
}

}  // namespace quern
