#include "codegen/fold_copy.h"

#include "rewrite/fold.h"
#include "rewrite/outside.h"

namespace quern {

const UOp* FoldCopy(UOpGraph& graph, const UOp* copy) {
  const bool is_float = IsFloat(copy->dtype);
  if (copy->op == Op::kLoad && is_float) {
    const UOp* index = copy->src(0);
    const bool gated = index->source_count == 3 && index->src(2)->op == Op::kConst;
    return gated && index->src(2)->arg.a == 0 ? Outside(graph, copy->dtype) : copy;
  }
  if (const UOp* folded = FoldOutside(graph, copy)) return folded;
  // Numbers are left to LLVM; gates decide what is written at all.
  if (is_float || copy->child_mask != OpBit(Op::kConst)) return copy;
  const UOp* constant = FoldConstant(graph, copy);
  return constant == nullptr ? copy : constant;
}

}  // namespace quern
