#include "rewrite/simplify.h"

#include "rewrite/build.h"
#include "rewrite/native_rule.h"

namespace quern {
namespace {

bool IsConstOf(const UOp* u, int64_t value) {
  return u->IsConst() && !IsFloat(u->dtype) && u->IntValue() == value;
}

const UOp* Basic(const UOp* u, RuleContext& context) {
  UOpGraph& g = context.graph;
  auto constant = [&](int64_t v) { return g.Make(Op::kConst, u->dtype, {}, {v, 0}); };
  const UOp* a = u->src(0);
  const UOp* b = u->source_count > 1 ? u->src(1) : nullptr;
  if (u->op == Op::kWhere) {
    if (a->IsConst()) return a->IntValue() != 0 ? b : u->src(2);
    if (b == u->src(2)) return b;
    if (IsBool(u->dtype) && IsConstOf(b, 1) && IsConstOf(u->src(2), 0)) return a;
    return nullptr;
  }
  if (b != nullptr && a->IsConst() && !b->IsConst() && GetOpInfo(u->op).commutative) {
    return g.Make(u->op, u->dtype, {b, a});
  }
  if (u->op == Op::kNot && a->op == Op::kNot) return a->src(0);
  if (!IsInteger(u->dtype) && !IsIndex(u->dtype)) return nullptr;
  if (u->op == Op::kAdd && IsConstOf(b, 0)) return a;
  if (u->op == Op::kMul && IsConstOf(b, 1)) return a;
  if (u->op == Op::kMul && IsConstOf(b, 0)) return b;
  if (u->op == Op::kSub) {
    const UOp* minus = g.Make(Op::kConst, u->dtype, {}, {WrapInteger(u->dtype.scalar, -1), 0});
    return g.Make(Op::kAdd, u->dtype, {a, g.Make(Op::kMul, u->dtype, {b, minus})});
  }
  if ((u->op == Op::kFloorDiv || u->op == Op::kTruncDiv) && IsConstOf(b, 1)) return a;
  if ((u->op == Op::kFloorMod || u->op == Op::kTruncMod) && IsConstOf(b, 1)) return constant(0);
  if ((u->op == Op::kAdd || u->op == Op::kMul) && b->IsConst() && a->op == u->op &&
      a->src(1)->IsConst()) {
    return g.Make(u->op, u->dtype, {a->src(0), g.Make(u->op, u->dtype, {a->src(1), b})});
  }
  return nullptr;
}

RuleSet MakeRules() {
  uint64_t roots = 0;
  for (int i = 0; i < kOpCount; ++i) {
    if (IsElementwise(static_cast<Op>(i))) roots |= OpBit(static_cast<Op>(i));
  }
  static const NativeRule basic[] = {{"basic", roots, Basic, ""}};
  return RuleSet(NativeFoldRules()) + RuleSet(basic) + RuleSet(NativeIndexRules()) +
         RuleSet(NativeLogicRules()) + RuleSet(NativeStructureRules());
}

}  // namespace

const RuleSet& SimplifyRules(bool float_reassoc) {
  static const RuleSet rules = MakeRules();
  return rules;
}

const UOp* Simplify(UOpGraph& g, const UOp* root) { return Simplify(g, root, {}); }

const UOp* Simplify(UOpGraph& g, const UOp* root, const SimplifyOptions& options) {
  BoundsAnalysis bounds;
  for (const auto& [node, narrower] : options.assumed) bounds.Assume(node, narrower);
  RewriteOptions rewrite;
  rewrite.observer = options.observer;
  rewrite.stop_after = options.rewrite_limit;
  absl::StatusOr<const UOp*> result =
      Rewrite(g, root, SimplifyRules(options.float_reassoc), bounds, rewrite);
  // Each rewrite alone keeps the value, so if the rules should ever loop the kernel is still right.
  if (!result.ok()) return root;
  return *result;
}

}  // namespace quern
