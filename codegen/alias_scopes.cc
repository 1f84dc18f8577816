#include "codegen/alias_scopes.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>

#include <vector>

#include "absl/container/flat_hash_map.h"

namespace quern {
namespace {

// The address of a load or store, masked ones included; nullptr for anything else.
const llvm::Value* AddressOf(const llvm::Instruction& instruction) {
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (call->getIntrinsicID() == llvm::Intrinsic::masked_load) return call->getArgOperand(0);
    if (call->getIntrinsicID() == llvm::Intrinsic::masked_store) return call->getArgOperand(1);
    return nullptr;
  }
  return llvm::getLoadStorePointerOperand(&instruction);
}

}  // namespace

void MarkAliases(llvm::Function& function, std::span<llvm::Value* const> buffers) {
  llvm::LLVMContext& context = function.getContext();
  llvm::MDBuilder metadata(context);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("buffers");
  absl::flat_hash_map<const llvm::Value*, llvm::MDNode*> scopes;
  std::vector<llvm::Metadata*> all;
  for (llvm::Value* buffer : buffers) {
    if (scopes.contains(buffer)) continue;
    scopes[buffer] = metadata.createAnonymousAliasScope(domain);
    all.push_back(scopes[buffer]);
  }
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      const llvm::Value* base = AddressOf(instruction);
      while (base != nullptr && !scopes.contains(base)) {
        const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(base);
        base = address == nullptr ? nullptr : address->getPointerOperand();
      }
      if (base == nullptr) continue;
      llvm::MDNode* own = scopes.at(base);
      std::vector<llvm::Metadata*> others;
      for (llvm::Metadata* scope : all) {
        if (scope != own) others.push_back(scope);
      }
      instruction.setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context, {own}));
      instruction.setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context, others));
    }
  }
}

}  // namespace quern
