#include "rewrite/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "rewrite/pseudo_code.h"
#include "rewrite/rule_order.h"
#include "rewrite/simplify.h"
#include "tests/rule_instances.h"

namespace quern {
namespace {

std::string Described(const Rule& rule) {
  return std::string(rule.name) + ": " + ToString(rule.before) + "  ->  " + ToString(rule.after) +
         "  when " + ToString(rule.when);
}

std::vector<const Rule*> AllRules() {
  std::vector<const Rule*> rules;
  for (const RuleTable& table : AllRuleTables()) {
    for (const Rule& rule : table.rules) rules.push_back(&rule);
  }
  return rules;
}

TEST(RulesTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Rule* rule : AllRules()) EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
  for (const NativeRuleTable& table : AllNativeRuleTables()) {
    for (const NativeRule& rule : table.rules) {
      EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
      EXPECT_FALSE(rule.reason.empty()) << rule.name;
    }
  }
}

TEST(RulesTest, EveryRuleMakesThingsSmaller) {
  for (const Rule* rule : AllRules()) {
    if (rule->descent == Descent::kGuard) continue;
    EXPECT_TRUE(IsSmaller(rule->domain, rule->after, rule->before)) << Described(*rule);
  }
}

TEST(RulesTest, AnOrderThatAllowedLoopsWouldBeUseless) {
  using namespace rule_language;  // NOLINT(google-build-using-namespace)
  EXPECT_FALSE(IsSmaller(Domain::kIndex, y + x, x + y));
  EXPECT_FALSE(IsSmaller(Domain::kIndex, x + (y + z), (x + y) + z));
  EXPECT_FALSE(IsSmaller(Domain::kIndex, (x * 2) / 2, x));
  EXPECT_FALSE(IsSmaller(Domain::kIndex, x * y + x * z, x * (y + z)));
  // The division by 60 of (x / 15 + 1) / 4, with the constants going the other way.
  EXPECT_FALSE(IsSmaller(Domain::kIndex, (x / c0 + c1) / c2, (x + c0) / c1));
}

// Rules that descend by their guard: the result never satisfies it again.
TEST(RulesTest, GuardedRulesStopAfterOneStep) {
  for (const Rule* rule : AllRules()) {
    if (rule->descent != Descent::kGuard) continue;
    const RuleSet alone({rule, 1});
    RuleInstances instances(*rule, 3);
    for (int i = 0; i < 500; ++i) {
      UOpGraph g;
      const RuleInstance instance = instances.Draw(g);
      BoundsAnalysis bounds;
      for (const auto& [node, narrow] : instance.assumed) bounds.Assume(node, narrow);
      RewriteOptions options;
      options.limit = 4;
      EXPECT_TRUE(Rewrite(g, instance.before, alone, bounds, options).ok()) << Described(*rule);
    }
  }
}

// Each rule alone: it fires where its guard holds, gives an equal value, and does not fire where
// the guard does not hold.
TEST(RulesTest, EachRuleAloneKeepsTheValue) {
  for (const Rule* rule : AllRules()) {
    const RuleSet alone({rule, 1});
    RuleInstances instances(*rule, 1);
    int fired = 0;
    int refused = 0;
    const bool has_guard = !rule->when.empty();
    for (int i = 0; i < 30000 && (fired < 20 || (has_guard && refused < 5)); ++i) {
      UOpGraph g;
      const RuleInstance instance = instances.Draw(g);
      if (instance.before->op != CompileRule(*rule)[0].root) continue;  // Folded to a constant.
      BoundsAnalysis bounds;
      for (const auto& [node, narrow] : instance.assumed) bounds.Assume(node, narrow);
      RuleContext context{g, bounds};
      std::string_view name;
      const UOp* after = alone.Apply(instance.before, context, &name);
      if (!instance.guard_holds) {
        // Another order of the operands may satisfy it.
        if (after == nullptr) ++refused;
      } else if (after != nullptr) {
        ++fired;
      }
      if (after == nullptr) continue;
      ASSERT_TRUE(after->dtype == instance.before->dtype) << Described(*rule);
      for (int k = 0; k < 4; ++k) {
        const std::vector<int64_t> values = instances.DrawValues(instance);
        const std::vector<Scalar> assignment(g.size());
        const InstanceMemory memory{values};
        const std::optional<Scalar> x = ValueOf(instance.before, assignment, memory);
        const std::optional<Scalar> y = ValueOf(after, assignment, memory);
        if (!x.has_value() || !y.has_value()) continue;
        const ScalarType type = after->dtype.scalar;
        const bool real = rule->domain == Domain::kFloatReassoc && IsFloat(type);
        const bool same =
            real ? !std::isfinite(x->f) || std::fabs(x->f - y->f) <= 1e-9 * (1 + std::fabs(x->f))
                 : SameValue(type, *x, *y);
        ASSERT_TRUE(same) << Described(*rule) << "\n"
                          << ExpressionText(instance.before) << " is " << x->i << "\n"
                          << ExpressionText(after) << " is " << y->i;
      }
    }
    EXPECT_GT(fired, 0) << "never fired: " << Described(*rule);
    if (has_guard) EXPECT_GT(refused, 0) << "guard never false: " << Described(*rule);
  }
}

class Fired : public RewriteObserver {
 public:
  void OnRewrite(std::string_view rule, const UOp*, const UOp*) override { names.emplace(rule); }
  std::set<std::string, std::less<>> names;
};

// A rule that others always forestall is dead weight.
TEST(RulesTest, EveryRuleFiresAmongAllOthers) {
  Fired fired;
  SimplifyOptions options;
  options.observer = &fired;
  for (const Rule* rule : AllRules()) {
    options.float_reassoc = rule->domain == Domain::kFloatReassoc;
    RuleInstances instances(*rule, 5);
    for (int i = 0; i < 4000 && !fired.names.contains(rule->name); ++i) {
      UOpGraph g;
      const RuleInstance instance = instances.Draw(g);
      options.assumed = instance.assumed;
      Simplify(g, instance.before, options);
    }
  }
  options.assumed = {};
  options.float_reassoc = false;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    UOpGraph g;
    RandomExpression random(g, seed);
    Simplify(g, random.Make(seed % 2 == 0 ? kIndexType : kBoolType, 5), options);
  }
  for (const Rule* rule : AllRules()) {
    EXPECT_TRUE(fired.names.contains(rule->name)) << "forestalled: " << Described(*rule);
  }
}

TEST(RulesTest, ExpressionsArePrintedAsTheyAreWritten) {
  using namespace rule_language;  // NOLINT(google-build-using-namespace)
  EXPECT_EQ(ToString((x / c0) * c0 + x % c0), "x / c0 * c0 + x % c0");
  EXPECT_EQ(ToString(x - (y - z)), "x - (y - z)");
  EXPECT_EQ(ToString(where(!p, max(x, 0), -y)), "where(!p, max(x, 0), -y)");
  EXPECT_EQ(ToString(within(x, c0)), "0 <= vmin(x) & vmax(x) < c0");
}

}  // namespace
}  // namespace quern
