#include "codegen/emit_tile.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <vector>

#include "codegen/matrix_instructions.h"

namespace quern {
namespace {

using llvm::IRBuilderBase;
using llvm::Value;

llvm::Intrinsic::ID IntrinsicOf(const MatrixInstruction& m) {
  if (m.name == "tdpbf16ps") return llvm::Intrinsic::x86_tdpbf16ps_internal;
  if (m.name == "tdpbusd") return llvm::Intrinsic::x86_tdpbusd_internal;
  QUERN_CHECK(m.name == "tdpbsud");
  return llvm::Intrinsic::x86_tdpbsud_internal;
}

bool IsTileRead(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::x86_cast_tile_to_vector;
}

// Reads again where the value is used, if that is another block.
void ReadBehind(llvm::Instruction& read, llvm::Use& use) {
  auto* user = llvm::cast<llvm::Instruction>(use.getUser());
  auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
  llvm::BasicBlock* from = phi == nullptr ? user->getParent() : phi->getIncomingBlock(use);
  if (from != read.getParent()) {
    llvm::Instruction* again = read.clone();
    again->insertBefore(phi == nullptr ? user->getIterator()
                                       : from->getTerminator()->getIterator());
    use.set(again);
    return;
  }
  // At a loop's head it is the accumulator; at its exit there is no other incoming value.
  if (phi == nullptr || phi->getNumIncomingValues() != 1) return;
  llvm::Instruction* again = read.clone();
  again->insertBefore(phi->getParent()->getFirstNonPHIIt());
  phi->replaceAllUsesWith(again);
  phi->eraseFromParent();
}

}  // namespace

Value* EmitTileLoad(IRBuilderBase& b, const Access& access, DType dtype, Value* pointer) {
  const int64_t bytes = ByteSize(dtype.scalar);
  const auto rows = static_cast<uint16_t>(dtype.lanes / access.columns);
  return b.CreateIntrinsic(
      llvm::Intrinsic::x86_tileloadd64_internal, {},
      {b.getInt16(rows), b.getInt16(static_cast<uint16_t>(access.columns * bytes)), pointer,
       b.getInt64(static_cast<uint64_t>(access.stride * bytes))});
}

Value* EmitTile(IRBuilderBase& b, const UOp* u, Value* accumulator, Value* a, Value* b_operand) {
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(u->arg.a)];
  const auto rows = static_cast<uint16_t>(u->arg.b);
  const auto width = static_cast<uint16_t>(u->dtype.lanes / rows * ByteSize(u->dtype.scalar));
  const auto depth =
      static_cast<uint16_t>(u->src(1)->dtype.lanes / rows * ByteSize(u->src(1)->dtype.scalar));
  llvm::Type* vector = accumulator->getType();
  Value* before =
      b.CreateIntrinsic(llvm::Intrinsic::x86_cast_vector_to_tile, {vector}, {accumulator});
  Value* after = b.CreateIntrinsic(
      IntrinsicOf(m), {},
      {b.getInt16(rows), b.getInt16(width), b.getInt16(depth), before, a, b_operand});
  return b.CreateIntrinsic(llvm::Intrinsic::x86_cast_tile_to_vector, {vector}, {after});
}

void SinkTileReads(llvm::Function& function) {
  std::vector<llvm::Instruction*> reads;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& i : block) {
      if (IsTileRead(i)) reads.push_back(&i);
    }
  }
  for (llvm::Instruction* read : reads) {
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : read->uses()) uses.push_back(&use);
    for (llvm::Use* use : uses) ReadBehind(*read, *use);
    if (read->use_empty()) read->eraseFromParent();
  }
}

}  // namespace quern
