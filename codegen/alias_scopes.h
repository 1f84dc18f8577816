#ifndef QUERN_CODEGEN_ALIAS_SCOPES_H_
#define QUERN_CODEGEN_ALIAS_SCOPES_H_

#include <span>

namespace llvm {
class Function;
class Value;
}  // namespace llvm

namespace quern {

/// Tells LLVM that accesses through different pointers of `buffers` never touch the same memory:
/// each load and store whose address is computed from one of them gets a scope of its own.
void MarkAliases(llvm::Function& function, std::span<llvm::Value* const> buffers);

}  // namespace quern

#endif  // QUERN_CODEGEN_ALIAS_SCOPES_H_
