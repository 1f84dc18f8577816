#include "rewrite/rules.h"

namespace quern {

std::span<const RuleTable> AllRuleTables() {
  static const RuleTable tables[] = {
      {"ring", "sums and products of integers and Index", RingRules()},
      {"division", "quotients and remainders of Index", DivisionRules()},
      {"index-compare", "comparisons of Index", IndexCompareRules()},
      {"extremum", "max, min and comparisons of integers and Index", ExtremumRules()},
      {"integer", "wrapping integers", IntegerRules()},
      {"bool", "logic", BoolRules()},
      {"where", "choices", WhereRules()},
      {"float", "floats, exactly", FloatRules()},
      {"float-reassoc", "floats as real numbers", FloatReassocRules()},
  };
  return tables;
}

std::span<const NativeRuleTable> AllNativeRuleTables() {
  static const NativeRuleTable tables[] = {
      {"fold", NativeFoldRules()},
      {"bounds", NativeBoundsRules()},
      {"sum", NativeSumRules()},
      {"division", NativeDivisionRules()},
      {"compare", NativeCompareRules()},
      {"logic", NativeLogicRules()},
      {"structure", NativeStructureRules()},
      {"outside", NativeOutsideRules()},
  };
  return tables;
}

}  // namespace quern
