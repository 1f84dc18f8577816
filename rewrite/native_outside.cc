#include "rewrite/native_rule.h"
#include "rewrite/outside.h"

// Padding: what was not read takes no part in products and sums.

namespace quern {
namespace {

const UOp* ProductOrSum(const UOp* u, RuleContext& context) {
  return FoldOutside(context.graph, u);
}

const UOp* Cast(const UOp* u, RuleContext& context) {
  if (!IsFloat(u->dtype) || !IsOutside(u->src(0))) return nullptr;
  return Outside(context.graph, u->dtype);
}

const UOp* Reduction(const UOp* u, RuleContext& context) {
  if (u->reduce_op() != Op::kAdd || !IsOutside(u->src(0))) return nullptr;
  return Outside(context.graph, u->dtype);
}

// An accumulator to which nothing is added.
const UOp* Accumulation(const UOp* u, RuleContext& context) {
  const UOp* index = u->src(0);
  const UOp* value = u->src(1);
  if (index->src(0)->op != Op::kRegister || value->op != Op::kLoad) return nullptr;
  if (value->src(0) != index) return nullptr;
  return context.graph.Make(Op::kBlock, kVoidType, {});
}

}  // namespace

std::span<const NativeRule> NativeOutsideRules() {
  static const NativeRule rules[] = {
      {"outside.product", OpBit(Op::kMul), ProductOrSum, "reads a flag"},
      {"outside.sum", OpBit(Op::kAdd), ProductOrSum, "reads a flag"},
      {"outside.cast", OpBit(Op::kCast), Cast, "reads a flag"},
      {"outside.reduce", OpBit(Op::kReduce), Reduction, "reads a flag"},
      {"outside.accumulation", OpBit(Op::kStore), Accumulation, "makes a statement vanish"},
  };
  return rules;
}

}  // namespace quern
