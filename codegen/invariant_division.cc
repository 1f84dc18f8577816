#include "codegen/invariant_division.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/CodeGen/TargetLowering.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <bit>
#include <limits>
#include <utility>
#include <vector>

namespace quern {
namespace {

using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::IRBuilder;
using llvm::Loop;
using llvm::Value;

// Divisors from 2^-40 to 2^40, numerators from 2^-80 on: a quotient is a normal number, and e a
// multiple of a number that is one.
constexpr double kLeastDivisor = 0x1p-40;
constexpr double kLargestDivisor = 0x1p40;
constexpr float kLeastNumerator = 0x1p-80f;
// The reciprocal is a division, too.
constexpr int64_t kLeastRegisters = 4;

struct Division {
  llvm::BinaryOperator* node;
  // The end of the block ahead of the outermost loop that does not change the divisor. Cutting
  // blocks for other divisions leaves it there.
  llvm::Instruction* ahead;
};

// Divisions of vectors by what their innermost loop does not change.
std::vector<Division> FindDivisions(llvm::Function& f, llvm::FunctionAnalysisManager& analyses,
                                    int lanes) {
  std::vector<Division> found;
  for (llvm::Instruction& i : llvm::instructions(f)) {
    auto* division = llvm::dyn_cast<llvm::BinaryOperator>(&i);
    if (division == nullptr || division->getOpcode() != llvm::Instruction::FDiv) continue;
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(division->getType());
    if (type == nullptr || !type->getElementType()->isFloatTy()) continue;
    // Most kernels never come here: they need no analysis.
    const auto& loops = analyses.getResult<llvm::LoopAnalysis>(f);
    const Loop* loop = loops.getLoopFor(division->getParent());
    const Value* divisor = division->getOperand(1);
    if (loop == nullptr || !loop->isLoopInvariant(divisor)) continue;
    if (loop->isLoopInvariant(division->getOperand(0))) continue;
    auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(f);
    const int64_t registers = (type->getNumElements() + lanes - 1) / lanes;
    if (registers * evolution.getSmallConstantTripCount(loop) < kLeastRegisters) continue;
    while (loop->getParentLoop() != nullptr && loop->getParentLoop()->isLoopInvariant(divisor)) {
      loop = loop->getParentLoop();
    }
    if (llvm::BasicBlock* ahead = loop->getLoopPreheader()) {
      found.push_back({division, ahead->getTerminator()});
    }
  }
  return found;
}

// 1/y, or NaN where the quotients need not be right.
Value* Reciprocal(IRBuilder<>& b, Value* y) {
  Value* splat = llvm::getSplatValue(y);
  Value* divisor = splat == nullptr ? y : splat;
  llvm::Type* type = divisor->getType();
  Value* fits = b.CreateAnd(b.CreateFCmpOGE(divisor, ConstantFP::get(type, kLeastDivisor)),
                            b.CreateFCmpOLE(divisor, ConstantFP::get(type, kLargestDivisor)));
  Value* reciprocal = b.CreateSelect(fits, b.CreateFDiv(ConstantFP::get(type, 1), divisor),
                                     ConstantFP::getNaN(type));
  if (splat == nullptr) return reciprocal;
  return b.CreateVectorSplat(llvm::cast<llvm::FixedVectorType>(y->getType())->getNumElements(),
                             reciprocal);
}

// Registers of a vector.
std::vector<Value*> Pieces(IRBuilder<>& b, Value* vector, int lanes) {
  const auto all =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  if (all <= lanes || all % lanes != 0) return {vector};
  std::vector<Value*> pieces;
  for (int begin = 0; begin < all; begin += lanes) {
    llvm::SmallVector<int, 64> mask;
    for (int i = 0; i < lanes; ++i) mask.push_back(begin + i);
    pieces.push_back(b.CreateShuffleVector(vector, mask));
  }
  return pieces;
}

// Whether a lane has an x that is tiny but not 0, or a quotient that is NaN: what overflowed is.
Value* AnyUnsure(IRBuilder<>& b, Value* x, Value* q, int lanes) {
  std::vector<Value*> numerators = Pieces(b, x, lanes);
  const std::vector<Value*> quotients = Pieces(b, q, lanes);
  llvm::Type* bits = numerators[0]->getType()->getWithNewType(b.getInt32Ty());
  // Without the sign, and less one: 0 becomes the largest number.
  Value* least = nullptr;
  for (Value* n : numerators) {
    Value* word = b.CreateBitCast(n, bits);
    word = b.CreateAdd(b.CreateAdd(word, word), ConstantInt::getSigned(bits, -1));
    least = least == nullptr ? word : b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, least, word);
  }
  const uint32_t bound = 2 * std::bit_cast<uint32_t>(kLeastNumerator) - 1;
  Value* unsure = b.CreateICmpULT(least, ConstantInt::get(bits, bound));
  for (size_t i = 0; i < quotients.size(); i += 2) {
    Value* other = quotients[std::min(i + 1, quotients.size() - 1)];
    unsure = b.CreateOr(unsure, b.CreateFCmpUNO(quotients[i], other));
  }
  return b.CreateOrReduce(unsure);
}

void Rewrite(llvm::BinaryOperator* division, Value* reciprocal, int lanes) {
  IRBuilder<> b(division);
  Value* x = division->getOperand(0);
  Value* y = division->getOperand(1);
  const auto fma = [&](Value* a, Value* c, Value* d) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {a, c, d});
  };
  Value* quotient = b.CreateFMul(x, reciprocal);
  Value* error = fma(quotient, y, b.CreateFNeg(x));
  Value* corrected = fma(b.CreateFNeg(error), reciprocal, quotient);
  Value* unsure = AnyUnsure(b, x, corrected, lanes);
  llvm::MDNode* rare = llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights();
  llvm::BasicBlock* fast = division->getParent();
  llvm::Instruction* end =
      llvm::SplitBlockAndInsertIfThen(unsure, division->getIterator(), /*Unreachable=*/false, rare);
  llvm::Instruction* slow = division->clone();
  slow->insertBefore(end->getIterator());
  b.SetInsertPoint(division->getParent(), division->getParent()->begin());
  llvm::PHINode* result = b.CreatePHI(division->getType(), 2);
  result->addIncoming(corrected, fast);
  result->addIncoming(slow, end->getParent());
  division->replaceAllUsesWith(result);
  division->eraseFromParent();
}

}  // namespace

bool DivideByReciprocals(llvm::Function& f, llvm::AnalysisManager<llvm::Function>& analyses,
                         const llvm::TargetMachine& machine, int vector_bytes) {
  const llvm::TargetLowering* lowering = machine.getSubtargetImpl(f)->getTargetLowering();
  if (!lowering->isOperationLegalOrCustom(llvm::ISD::FMA, llvm::MVT::f32)) {
    return false;
  }
  const int lanes = vector_bytes / 4;
  const std::vector<Division> divisions = FindDivisions(f, analyses, lanes);
  if (divisions.empty()) return false;
  llvm::DenseMap<std::pair<Value*, llvm::Instruction*>, Value*> reciprocals;
  for (const Division& d : divisions) {
    Value*& reciprocal = reciprocals[{d.node->getOperand(1), d.ahead}];
    if (reciprocal == nullptr) {
      IRBuilder<> b(d.ahead);
      reciprocal = Reciprocal(b, d.node->getOperand(1));
    }
    Rewrite(d.node, reciprocal, lanes);
  }
  return true;
}

}  // namespace quern
