#include "optimizer/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "optimizer/environment.h"

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PrepareConfig Read(const Environment& environment) {
  const absl::StatusOr<PrepareConfig> c = ConfigFromEnvironment(environment);
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *c : PrepareConfig{};
}
std::string ErrorOf(const Environment& environment) {
  const absl::StatusOr<PrepareConfig> c = ConfigFromEnvironment(environment);
  return c.ok() ? "no error" : std::string(c.status().message());
}

TEST(ConfigurationTest, TheHeuristicIsTheDefault) {
  EXPECT_EQ(Read({}).strategy, OptStrategy(OptStrategy::Heuristic{}));
  EXPECT_EQ(Read({{"BEAM", "0"}}).strategy, OptStrategy(OptStrategy::Heuristic{}));
  EXPECT_EQ(Read({{"NOOPT", "0"}}).strategy, OptStrategy(OptStrategy::Heuristic{}));
  EXPECT_TRUE(Read({}).cache);
  EXPECT_THAT(Read({}).notes, IsEmpty());
}

TEST(ConfigurationTest, BeamAndNoOpt) {
  EXPECT_EQ(Read({{"BEAM", "8"}}).strategy, OptStrategy(OptStrategy::Beam{.width = 8}));
  EXPECT_EQ(Read({{"BEAM", "8"}, {"NOOPT", "0"}}).strategy,
            OptStrategy(OptStrategy::Beam{.width = 8}));
  EXPECT_EQ(Read({{"BEAM", "2"}, {"QUERN_BEAM_SECONDS", "2.5"}}).strategy,
            OptStrategy(OptStrategy::Beam{.width = 2, .seconds = 2.5}));
  const PrepareConfig both = Read({{"BEAM", "8"}, {"NOOPT", "1"}});
  EXPECT_EQ(both.strategy, OptStrategy(OptStrategy::NoOpt{}));
  EXPECT_THAT(both.notes, ElementsAre(HasSubstr("NOOPT=1 wins over BEAM=8")));
  EXPECT_THAT(Read({{"BEAM", "0"}, {"NOOPT", "1"}}).notes, IsEmpty());
}

TEST(ConfigurationTest, BadValuesNameVariableValueAndWhatIsAllowed) {
  for (const char* bad :
       {"", "abc", "1.5", "-1", " 2", "2 ", "0x2", "+2", "1001", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(ErrorOf({{"BEAM", bad}}), std::string("environment variable BEAM=\"") + bad +
                                            "\": must be an integer from 0 to 1000 (unset: 0)");
  }
  EXPECT_THAT(ErrorOf({{"NOOPT", "yes"}}), HasSubstr("NOOPT=\"yes\": must be 0 or 1"));
  EXPECT_THAT(ErrorOf({{"NOOPT", "2"}}), HasSubstr("NOOPT=\"2\""));
  for (const char* bad : {"", "0", "-1", "inf", "nan", "1s", " 1"}) {
    EXPECT_THAT(ErrorOf({{"QUERN_BEAM_SECONDS", bad}}), HasSubstr("QUERN_BEAM_SECONDS"));
  }
  // Every variable is checked, also with a value that nothing allows.
  for (const EnvironmentVariable& v : EnvironmentVariables()) {
    EXPECT_THAT(ErrorOf({{std::string(v.name), ""}}), HasSubstr(std::string(v.allowed))) << v.name;
  }
}

TEST(ConfigurationTest, UnknownNamesAreNoted) {
  EXPECT_THAT(Read({{"QUERN_THREAD", "2"}}).notes, ElementsAre(HasSubstr("QUERN_THREAD")));
}

TEST(ConfigurationTest, OtherVariables) {
  const PrepareConfig c = Read({{"QUERN_THREADS", "3"},
                                {"QUERN_CACHE", "0"},
                                {"QUERN_CACHE_DIR", "/tmp/x"},
                                {"QUERN_FLOAT_REASSOC", "1"},
                                {"QUERN_VERIFY", "1"},
                                {"QUERN_REWRITE_LIMIT", "17"},
                                {"QUERN_SEED", "5"}});
  EXPECT_EQ(c.threads, 3);
  EXPECT_FALSE(c.cache);
  EXPECT_EQ(c.cache_folder, "/tmp/x");
  EXPECT_TRUE(c.float_reassoc);
  EXPECT_TRUE(c.verify);
  EXPECT_EQ(c.rewrite_limit, 17);
  EXPECT_EQ(c.seed, 5u);
}

TEST(ConfigurationTest, TheBuilderChecks) {
  using Builder = PrepareConfig::Builder;
  const auto good = Builder().Strategy(OptStrategy::Beam{.width = 4}).Threads(2).Build();
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->strategy.As<OptStrategy::Beam>()->width, 4);
  EXPECT_EQ(good->strategy.As<OptStrategy::NoOpt>(), nullptr);
  EXPECT_FALSE(Builder().Strategy(OptStrategy::Beam{.width = 0}).Build().ok());
  EXPECT_FALSE(Builder().Strategy(OptStrategy::Beam{.seconds = -1}).Build().ok());
  EXPECT_FALSE(Builder().Threads(-1).Build().ok());
  EXPECT_FALSE(Builder().RewriteLimit(-1).Build().ok());
  // What the environment says may be changed afterwards.
  const auto changed = Builder(Read({{"BEAM", "8"}})).Strategy(OptStrategy::NoOpt{}).Build();
  EXPECT_EQ(changed->strategy, OptStrategy(OptStrategy::NoOpt{}));
}

TEST(ConfigurationTest, StrategiesDescribeEveryKnob) {
  EXPECT_EQ(OptStrategy(OptStrategy::NoOpt{}).Describe(), "noopt");
  EXPECT_EQ(OptStrategy().Describe(), "heuristic");
  EXPECT_EQ(OptStrategy(OptStrategy::Beam{.width = 4, .seconds = 2.5}).Describe(),
            "beam width=4 seconds=2.5");
  EXPECT_EQ(OptStrategy(OptStrategy::Explicit{{{ActionKind::kUpcast, 1, 32}}}).Describe(),
            "apply UPCAST(1,32)");
}

TEST(ConfigurationTest, TheManualShowsTheTable) {
  std::ifstream file(QUERN_SOURCE_DIR "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(EnvironmentTable()))
      << "docs/configuration.md must hold exactly this table";
}

}  // namespace
}  // namespace quern
