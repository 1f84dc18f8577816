#include "rewrite/rules.h"

#include <gtest/gtest.h>

#include "rewrite/rule_order.h"

namespace quern {
namespace {

TEST(RulesTest, EveryRuleMakesThingsSmaller) {
  for (const RuleTable& table : AllRuleTables()) {
    for (const Rule& rule : table.rules) {
      if (rule.descent == Descent::kGuard) continue;
      EXPECT_TRUE(IsSmaller(rule.domain, rule.after, rule.before))
          << rule.name << ": " << ToString(rule.before) << "  ->  " << ToString(rule.after);
    }
  }
}

}  // namespace
}  // namespace quern
