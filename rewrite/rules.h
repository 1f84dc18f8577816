#ifndef QUERN_REWRITE_RULES_H_
#define QUERN_REWRITE_RULES_H_

#include <span>
#include <string_view>

#include "rewrite/native_rule.h"
#include "rewrite/rule.h"

namespace quern {

/// A table of rules and what it is about. `quern rules`, the prover and docs/rules.md go through
/// all of them.
struct RuleTable {
  std::string_view name;
  std::string_view about;
  std::span<const Rule> rules;
};

std::span<const Rule> RingRules();          ///< sums and products of integers and Index
std::span<const Rule> DivisionRules();      ///< quotients and remainders of Index
std::span<const Rule> IndexCompareRules();  ///< comparisons of Index
std::span<const Rule> ExtremumRules();      ///< max, min, and comparisons of integers and Index
std::span<const Rule> IntegerRules();       ///< wrapping integers
std::span<const Rule> BoolRules();          ///< logic
std::span<const Rule> WhereRules();         ///< choices between values of any type
std::span<const Rule> FloatRules();         ///< floats, exactly
std::span<const Rule> FloatReassocRules();  ///< floats as real numbers

std::span<const RuleTable> AllRuleTables();

struct NativeRuleTable {
  std::string_view name;
  std::span<const NativeRule> rules;
};
std::span<const NativeRuleTable> AllNativeRuleTables();

}  // namespace quern

#endif  // QUERN_REWRITE_RULES_H_
