#ifndef QUERN_CODEGEN_EMIT_PREFIX_H_
#define QUERN_CODEGEN_EMIT_PREFIX_H_

#include "rewrite/uop.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace quern {

/// A kPrefix of `vector`, on registers of so many bytes.
llvm::Value* EmitPrefix(llvm::IRBuilderBase& builder, const UOp* u, llvm::Value* vector,
                        int register_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_PREFIX_H_
