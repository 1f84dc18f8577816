#ifndef QUERN_CODEGEN_WIDEN_REDUCTIONS_H_
#define QUERN_CODEGEN_WIDEN_REDUCTIONS_H_

#include "rewrite/graph.h"

namespace quern {

/// Makes every REDUCE of f16 or bf16 one of f32 whose result is rounded once. The order of a
/// reduction is free, so this is within its meaning, and more exact.
const UOp* WidenReductions(UOpGraph& graph, const UOp* sink);

}  // namespace quern

#endif  // QUERN_CODEGEN_WIDEN_REDUCTIONS_H_
