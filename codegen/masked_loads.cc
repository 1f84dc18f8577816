#include "codegen/masked_loads.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>

namespace quern {
namespace {

using llvm::IRBuilder;
using llvm::Value;

// The lanes from `first` of a vector of `all` to those of one of `count`; -1 is none of them.
llvm::SmallVector<int, 64> Lanes(unsigned count, int first, int all) {
  llvm::SmallVector<int, 64> lanes;
  for (int i = first; i < first + static_cast<int>(count); ++i) {
    lanes.push_back(i >= 0 && i < all ? i : -1);
  }
  return lanes;
}

// `count` lanes from `first`.
Value* Piece(IRBuilder<>& b, llvm::IntrinsicInst* load, unsigned first, unsigned count) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(load->getType());
  const unsigned all = type->getNumElements();
  auto* piece = llvm::FixedVectorType::get(type->getElementType(), count);
  Value* mask = load->getArgOperand(1);
  const llvm::APInt lanes = llvm::APInt::getBitsSet(all, first, first + count);
  const llvm::KnownBits known = llvm::computeKnownBits(mask, lanes, load->getDataLayout());
  const llvm::SmallVector<int, 64> part =
      Lanes(count, static_cast<int>(first), static_cast<int>(all));
  Value* others = b.CreateShuffleVector(load->getArgOperand(2), part);
  if (known.isZero()) return others;
  Value* place = b.CreateConstGEP1_64(type->getElementType(), load->getArgOperand(0), first);
  const uint64_t offset = first * uint64_t{type->getScalarSizeInBits()} / 8;
  const llvm::Align align = llvm::commonAlignment(load->getParamAlign(0).valueOrOne(), offset);
  llvm::Instruction* result = nullptr;
  if (known.isAllOnes()) {
    result = b.CreateAlignedLoad(piece, place, align);
  } else {
    result = b.CreateMaskedLoad(piece, place, align, b.CreateShuffleVector(mask, part), others);
  }
  result->setAAMetadata(load->getAAMetadata());
  return result;
}

void Cut(llvm::IntrinsicInst* load, unsigned lanes) {
  IRBuilder<> b(load);
  const unsigned all = llvm::cast<llvm::FixedVectorType>(load->getType())->getNumElements();
  Value* whole = llvm::PoisonValue::get(load->getType());
  for (unsigned first = 0; first < all; first += lanes) {
    const unsigned count = std::min(lanes, all - first);
    Value* piece = Piece(b, load, first, count);
    if (count == all) {
      whole = piece;
      break;
    }
    Value* wide =
        b.CreateShuffleVector(piece, Lanes(all, -static_cast<int>(first), static_cast<int>(count)));
    llvm::SmallVector<int, 64> chosen = Lanes(all, 0, static_cast<int>(all));
    for (unsigned i = first; i < first + count; ++i) chosen[i] = static_cast<int>(all + i);
    whole = b.CreateShuffleVector(whole, wide, chosen);
  }
  load->replaceAllUsesWith(whole);
  load->eraseFromParent();
}

}  // namespace

void CutMaskedLoads(llvm::Function& f, int vector_bytes) {
  llvm::SmallVector<llvm::IntrinsicInst*, 16> loads;
  for (llvm::Instruction& i : llvm::instructions(f)) {
    auto* load = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (load == nullptr || load->getIntrinsicID() != llvm::Intrinsic::masked_load) continue;
    const unsigned bits = load->getType()->getScalarSizeInBits();
    if (bits == 32 || bits == 64) loads.push_back(load);
  }
  for (llvm::IntrinsicInst* load : loads) {
    Cut(load, static_cast<unsigned>(vector_bytes) * 8 / load->getType()->getScalarSizeInBits());
  }
}

}  // namespace quern
