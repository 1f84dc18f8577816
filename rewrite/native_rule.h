#ifndef QUERN_REWRITE_NATIVE_RULE_H_
#define QUERN_REWRITE_NATIVE_RULE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "rewrite/bounds.h"
#include "rewrite/graph.h"

namespace quern {

/// What a rule may use besides the node it looks at.
struct RuleContext {
  UOpGraph& graph;
  BoundsAnalysis& bounds;
  const void* user = nullptr;  ///< the caller's own argument, for rules that know its type
};

/// A rule that needs code. It is not proved: `reason` says why it is no row of a table, and the
/// fuzz tests compare what it does with the interpreter.
struct NativeRule {
  std::string_view name;
  uint64_t roots;  ///< OpBit of every op it can apply to
  /// The node that replaces `u`, or nullptr where the rule does not apply. Never `u` itself.
  const UOp* (*apply)(const UOp* u, RuleContext& context);
  std::string_view reason;
};

/// The constant of the type of `like`, lanes included, with these bits.
inline const UOp* ConstLike(UOpGraph& g, const UOp* like, int64_t value) {
  return g.Make(Op::kConst, like->dtype, {}, {value, 0});
}

std::span<const NativeRule> NativeFoldRules();       ///< constants and casts
std::span<const NativeRule> NativeBoundsRules();     ///< intervals of one number
std::span<const NativeRule> NativeSumRules();        ///< sums of Index
std::span<const NativeRule> NativeDivisionRules();   ///< quotients and remainders of Index
std::span<const NativeRule> NativeCompareRules();    ///< comparisons of Index
std::span<const NativeRule> NativeLogicRules();      ///< chains of and, or, min, max
std::span<const NativeRule> NativeStructureRules();  ///< gates, loops, reductions, vectors
std::span<const NativeRule> NativeOutsideRules();    ///< what padding adds and multiplies

}  // namespace quern

#endif  // QUERN_REWRITE_NATIVE_RULE_H_
