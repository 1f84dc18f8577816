#include "codegen/emit_function.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace quern {
namespace {

constexpr uint64_t kZeroBytes = 4096;

}  // namespace

llvm::Function* MakePhaseFunction(llvm::Module& module, const std::string& name, int vector_bytes) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer, llvm::Type::getInt64Ty(context)}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  const std::string bits = std::to_string(vector_bytes * 8);
  f->addFnAttr("prefer-vector-width", bits);
  f->addFnAttr("min-legal-vector-width", bits);
  f->addParamAttr(0, llvm::Attribute::NoAlias);
  f->addParamAttr(0, llvm::Attribute::ReadOnly);
  f->addParamAttr(1, llvm::Attribute::NoAlias);
  f->addParamAttr(1, llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  return f;
}

void KeepAsScheduled(llvm::BranchInst& back) {
  llvm::LLVMContext& context = back.getContext();
  llvm::MDNode* disable =
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.disable")});
  llvm::MDNode* id = llvm::MDNode::getDistinct(context, {nullptr, disable});
  id->replaceOperandWith(0, id);
  back.setMetadata("llvm.loop", id);
}

llvm::Value* ZeroBytes(llvm::Module& module) {
  llvm::GlobalVariable* zeros = module.getNamedGlobal("zeros");
  if (zeros != nullptr) return zeros;
  llvm::Type* byte = llvm::Type::getInt8Ty(module.getContext());
  llvm::Type* type = llvm::ArrayType::get(byte, kZeroBytes);
  zeros = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::PrivateLinkage,
                                   llvm::Constant::getNullValue(type), "zeros");
  zeros->setAlignment(llvm::Align(64));
  return zeros;
}

}  // namespace quern
