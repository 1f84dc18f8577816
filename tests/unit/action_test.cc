#include "optimizer/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/action_space.h"
#include "rewrite/build.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ActionTest, EveryKindIsReadAsItIsPrinted) {
  std::vector<Action> actions;
  for (int i = 0; i < kActionKindCount; ++i) {
    Action action{static_cast<ActionKind>(i), i % 3, 4 + i};
    if (action.kind == ActionKind::kNoLocals) action = {action.kind, 0, 0};
    if (action.kind == ActionKind::kTensorCore) action.amount = 0;
    actions.push_back(action);
  }
  const std::string text = ActionsToString(actions);
  EXPECT_EQ(text,
            "UPCAST(0,4) UNROLL(1,5) LOCAL(2,6) GROUP(0,7) GROUPTOP(1,8) THREAD(2,9) SWAP(0,10) "
            "PADTO(1,11) NOLOCALS TC(0)");
  const absl::StatusOr<std::vector<Action>> read = ParseActions(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, actions);
}

TEST(ActionTest, BlanksCommasAndLineEndsSeparate) {
  const absl::StatusOr<std::vector<Action>> read =
      ParseActions(" UPCAST( 1 , 32 ),\nNOLOCALS,TC(0)UNROLL(0,-3) ");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ActionsToString(*read), "UPCAST(1,32) NOLOCALS TC(0) UNROLL(0,-3)");
  EXPECT_THAT(*ParseActions(""), IsEmpty());
  EXPECT_THAT(*ParseActions(" \n"), IsEmpty());
}

TEST(ActionTest, ErrorsNameThePlace) {
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& c : std::vector<Case>{
           {"UPCAST(1,32) JUMP(1)", "character 14: \"JUMP\" is no action"},
           {"upcast(1,2)", "character 1: \"upcast\" is no action"},
           {"UPCAST", "character 7: \"(\" is expected"},
           {"UPCAST(", "character 8: a whole number is expected"},
           {"UPCAST(x,2)", "character 8: a whole number is expected"},
           {"UPCAST(1)", "character 9: \",\" and a second number"},
           {"UPCAST(1,2", "character 11: \")\" is expected"},
           {"UPCAST(1,2.5)", "character 11: \")\" is expected"},
           {"UPCAST(1,)", "character 10: a whole number"},
           {"UPCAST(99999999999,2)", "the axis is too large"},
           {"UPCAST(1,99999999999999999999)", "character 10: a whole number"},
           {"TC(0,1)", "character 5: \")\" is expected"},
           {"NOLOCALS(1)", "character 9: \"\" is no action"},
           {"17", "character 1: \"\" is no action"},
       }) {
    const absl::StatusOr<std::vector<Action>> read = ParseActions(c.text);
    ASSERT_FALSE(read.ok()) << c.text;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.error)) << c.text;
  }
}

std::vector<std::string> Names(const std::vector<Action>& actions) {
  std::vector<std::string> names;
  for (const Action& a : actions) names.push_back(ActionToString(a));
  return names;
}

TEST(ActionSpaceTest, EveryProposalAppliesAndChangesTheKernel) {
  const Target target = Avx512Target();
  for (const Target& target : {Avx512Target(), Avx2Target(), SseTarget(), DetectCpu()}) {
    for (const auto& [formula, sizes] : std::vector<std::pair<const char*, const char*>>{
             {"C[i,j] = sum[k](A[i,k]*B[k,j])", "i=96,j=64,k=32"},
             {"s[] = sum[i](x[i])", "i=4096"},
             {"y[i] = x[i]*2", "i=17"}}) {
      FormulaKernel k = KernelOf(formula, sizes);
      const Scheduler start(*k.graph, k.sink, target);
      const std::vector<Action> legal = LegalActions(start);
      EXPECT_EQ(start.kernel(), k.sink);
      EXPECT_THAT(legal, Not(IsEmpty())) << formula;
      for (const Action& action : legal) {
        Scheduler scheduler = start;
        EXPECT_TRUE(scheduler.Apply(action).ok()) << ActionToString(action);
        EXPECT_NE(scheduler.kernel(), k.sink) << ActionToString(action);
      }
    }
  }
}

// The order decides between candidates that are equally fast, so it must not depend on anything but
// the kernel and the target.
TEST(ActionSpaceTest, TheOrderIsFixed) {
  const Target target = Avx512Target();
  std::vector<std::string> first;
  for (int run = 0; run < 3; ++run) {
    FormulaKernel k = MatmulKernel(48, 64, 32);
    // Other nodes in the graph move all addresses and ids.
    for (int n = 0; n < 100 * run; ++n) IndexConst(*k.graph, 1000 + n);
    const std::vector<std::string> names = Names(LegalActions(Scheduler(*k.graph, k.sink, target)));
    if (run == 0) first = names;
    EXPECT_EQ(names, first);
  }
}

TEST(ActionSpaceTest, TheListFollowsTheTarget) {
  const Target target = Avx512Target();
  FormulaKernel k = MatmulKernel(64, 192, 64);
  const auto legal = [&](const Target& target) {
    return Names(LegalActions(Scheduler(*k.graph, k.sink, target)));
  };
  const std::vector<std::string> wide = legal(Avx512Target());
  const std::vector<std::string> narrow = legal(SseTarget());
  // Three vectors of floats are 48 lanes with AVX-512 and 12 with SSE.
  EXPECT_THAT(wide, Contains("UPCAST(1,48)"));
  EXPECT_THAT(narrow, Not(Contains("UPCAST(1,48)")));
  EXPECT_THAT(narrow, Contains("UPCAST(1,12)"));
  EXPECT_THAT(wide, Contains("THREAD(0,4)"));
  EXPECT_THAT(legal(Avx512Target(1)), Not(Contains(HasSubstr("THREAD"))));
  EXPECT_THAT(legal(Avx512Target(64)), Contains("THREAD(0,64)"));
}

TEST(ActionSpaceTest, MatrixInstructionsAreProposedWhereTheCpuHasThem) {
  const Target target = Avx512Target();
  FormulaKernel k =
      KernelOf("C[i,j] = sum[k](f32(A[i,k])*f32(B[j,k]))", "i=16,j=16,k=32", "A=bf16,B=bf16");
  Target with = Avx512Target();
  with.features.push_back("avx512bf16");
  EXPECT_THAT(Names(LegalActions(Scheduler(*k.graph, k.sink, with))), Contains("TC(0)"));
  EXPECT_THAT(Names(LegalActions(Scheduler(*k.graph, k.sink, target))), Not(Contains("TC(0)")));
}

TEST(ActionSpaceTest, NothingToDoOnAScalar) {
  const Target target = Avx512Target();
  FormulaKernel k = KernelOf("s[] = x[]+1", "", "x=f32");
  const std::vector<Action> legal = LegalActions(Scheduler(*k.graph, k.sink, target));
  EXPECT_THAT(Names(legal), testing::Each(std::string("NOLOCALS")));
}

}  // namespace
}  // namespace quern
