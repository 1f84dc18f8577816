#include "rewrite/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rewrite/build.h"

namespace quern {
namespace {

using testing::HasSubstr;

bool IsConstOf(const UOp* u, int64_t value) { return u->IsConst() && u->IntValue() == value; }

// c → c − 2 for even constants above 0; the context argument counts.
const UOp* Down(const UOp* u, RuleContext& context) {
  if (u->IntValue() <= 0 || u->IntValue() % 2 != 0) return nullptr;
  if (context.user != nullptr) ++*static_cast<int*>(const_cast<void*>(context.user));
  return IndexConst(context.graph, u->IntValue() - 2);
}
const UOp* OneToThree(const UOp* u, RuleContext& context) {
  return IsConstOf(u, 1) ? IndexConst(context.graph, 3) : nullptr;
}
const UOp* ThreeToOne(const UOp* u, RuleContext& context) {
  return IsConstOf(u, 3) ? IndexConst(context.graph, 1) : nullptr;
}
// x + 5 → x * 5, seen by a rule only if its source is still a 5.
const UOp* AddFive(const UOp* u, RuleContext& context) {
  return IsConstOf(u->src(1), 5) ? Mul(context.graph, u->src(0), u->src(1)) : nullptr;
}
const UOp* FiveToSeven(const UOp* u, RuleContext& context) {
  return IsConstOf(u, 5) ? IndexConst(context.graph, 7) : nullptr;
}

class EngineTest : public testing::Test {
 protected:
  const UOp* C(int64_t v) { return IndexConst(g, v); }
  absl::StatusOr<const UOp*> Run(const UOp* u, std::span<const NativeRule> rules,
                                 const RewriteOptions& options = {}) {
    BoundsAnalysis bounds;
    return Rewrite(g, u, RuleSet(rules), bounds, options);
  }
  UOpGraph g;
};

class Log : public RewriteObserver {
 public:
  void OnRewrite(std::string_view rule, const UOp* before, const UOp* after) override {
    text += std::string(rule) + " " + std::to_string(before->IntValue()) + ">" +
            std::to_string(after->IntValue()) + "; ";
  }
  std::string text;
};

constexpr auto kConst = [] { return OpBit(Op::kConst); };

TEST_F(EngineTest, RewritesToAFixedPointAndOncePerNode) {
  const NativeRule rules[] = {{"down", kConst(), Down, "test"}};
  int count = 0;
  Log log;
  RewriteOptions options;
  options.user = &count;
  options.observer = &log;
  const UOp* six = C(6);
  const UOp* shared = Add(g, Mul(g, six, six), Mul(g, six, C(5)));
  const absl::StatusOr<const UOp*> result = Run(shared, rules, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, Add(g, Mul(g, C(0), C(0)), Mul(g, C(0), C(5))));
  EXPECT_EQ(count, 3);
  EXPECT_EQ(log.text, "down 6>4; down 4>2; down 2>0; ");
}

TEST_F(EngineTest, ALoopIsAnErrorThatNamesItsRules) {
  const NativeRule rules[] = {{"up", kConst(), OneToThree, "test"},
                              {"back", kConst(), ThreeToOne, "test"},
                              {"innocent", kConst(), FiveToSeven, "test"}};
  const absl::StatusOr<const UOp*> result = Run(Add(g, C(1), C(9)), rules);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("up, back"));
  EXPECT_THAT(std::string(result.status().message()), Not(HasSubstr("innocent")));
}

TEST_F(EngineTest, StopsAfterAsManyRewritesAsAsked) {
  const NativeRule rules[] = {{"down", kConst(), Down, "test"}};
  RewriteOptions options;
  options.stop_after = 2;
  EXPECT_EQ(*Run(C(8), rules, options), C(4));
  options.stop_after = 0;
  EXPECT_EQ(*Run(C(8), rules, options), C(8));
}

TEST_F(EngineTest, PreOrderSeesTheOriginalSources) {
  const NativeRule rules[] = {{"add", OpBit(Op::kAdd), AddFive, "test"},
                              {"five", kConst(), FiveToSeven, "test"}};
  const UOp* u = Add(g, Range(g, 9, 0, AxisType::kLoop), C(5));
  RewriteOptions options;
  EXPECT_EQ(*Run(u, rules, options), Add(g, u->src(0), C(7)));
  options.order = RewriteOptions::Order::kPreOrder;
  EXPECT_EQ(*Run(u, rules, options), Mul(g, u->src(0), C(7)));
}

TEST_F(EngineTest, DeepGraphsNeedNoStack) {
  const NativeRule rules[] = {{"down", kConst(), Down, "test"}};
  const UOp* u = C(2);
  for (int i = 0; i < 200000; ++i) u = Unary(g, Op::kNeg, u);
  const absl::StatusOr<const UOp*> result = Run(u, rules);
  ASSERT_TRUE(result.ok());
  EXPECT_NE(*result, u);
}

}  // namespace
}  // namespace quern
