#include "rewrite/simplify.h"

#include "rewrite/empty_loops.h"
#include "rewrite/rules.h"

namespace quern {
namespace {

// Constants first, so that rows need not ask for them (after those that are no mere numbers); then
// the rows; then what needs code, which sees only what no row could do.
RuleSet MakeRules(bool float_reassoc) {
  RuleSet rules = RuleSet(NativeOutsideRules()) + RuleSet(NativeFoldRules()) +
                  RuleSet(WhereRules()) + RuleSet(BoolRules()) + RuleSet(ExtremumRules()) +
                  RuleSet(DivisionRules()) + RuleSet(IndexCompareRules()) + RuleSet(RingRules()) +
                  RuleSet(IntegerRules()) + RuleSet(FloatRules());
  if (float_reassoc) rules = rules + RuleSet(FloatReassocRules());
  return rules + RuleSet(NativeBoundsRules()) + RuleSet(NativeSumRules()) +
         RuleSet(NativeDivisionRules()) + RuleSet(NativeCompareRules()) +
         RuleSet(NativeLogicRules()) + RuleSet(NativeStructureRules());
}

}  // namespace

const RuleSet& SimplifyRules(bool float_reassoc) {
  static const RuleSet exact = MakeRules(false);
  static const RuleSet reassoc = MakeRules(true);
  return float_reassoc ? reassoc : exact;
}

const UOp* Simplify(UOpGraph& g, const UOp* root) { return Simplify(g, root, {}); }

const UOp* Simplify(UOpGraph& g, const UOp* root, const SimplifyOptions& options) {
  root = DropEmptyLoops(g, root);
  BoundsAnalysis bounds;
  for (const auto& [node, narrower] : options.assumed) bounds.Assume(node, narrower);
  RewriteOptions rewrite;
  rewrite.observer = options.observer;
  rewrite.stop_after = options.rewrite_limit;
  absl::StatusOr<const UOp*> result =
      Rewrite(g, root, SimplifyRules(options.float_reassoc), bounds, rewrite);
  if (!result.ok()) {
    // The rules loop here, which is a bug of ours (the fuzz test looks for it); but each rewrite
    // alone keeps the value, so stopping anywhere is right.
    rewrite.stop_after = static_cast<int64_t>(g.size());
    result = Rewrite(g, root, SimplifyRules(options.float_reassoc), bounds, rewrite);
  }
  return *result;
}

}  // namespace quern
