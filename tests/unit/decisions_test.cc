#include "optimizer/decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "optimizer/heuristic.h"
#include "optimizer/measurer.h"
#include "tests/unit/formula_kernel.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DecisionsTest, TheFirstWayIsTakenUnlessToldOtherwise) {
  Decisions plain;
  EXPECT_EQ(plain.Choose("tile", 3), 0);
  EXPECT_EQ(plain.Choose("order", 2), 0);
  Decisions told({{"tile", 2}});
  EXPECT_EQ(told.Choose("tile", 3), 2);
  EXPECT_EQ(told.Choose("order", 2), 0);
}

TEST(DecisionsTest, PicksThingsAndConfirmsBeliefs) {
  const std::vector<int> things = {7, 8, 9};
  Decisions plain;
  EXPECT_EQ(plain.Pick("thing", things), 7);
  EXPECT_TRUE(plain.Confirm("packed", true));
  EXPECT_FALSE(plain.Confirm("in order", false));
  Decisions told({{"thing", 1}, {"packed", 1}, {"in order", 1}});
  EXPECT_EQ(told.Pick("thing", things), 8);
  EXPECT_FALSE(told.Confirm("packed", true));
  EXPECT_TRUE(told.Confirm("in order", false));
}

TEST(DecisionsTest, OneWayIsNoDecision) {
  Decisions decisions;
  EXPECT_EQ(decisions.Choose("tile", 1), 0);
  EXPECT_THAT(decisions.taken(), IsEmpty());
  EXPECT_THAT(decisions.Neighbours(), IsEmpty());
}

TEST(DecisionsTest, ANameThatComesAgainGetsANumber) {
  Decisions decisions({{"lanes 2", 1}});
  EXPECT_EQ(decisions.Choose("lanes", 2), 0);
  EXPECT_EQ(decisions.Choose("lanes", 2), 1);
  EXPECT_EQ(decisions.taken()[1].name, "lanes 2");
}

// There may be fewer ways after another deviation.
TEST(DecisionsTest, AWayThatIsNotThereIsTheLast) {
  Decisions decisions({{"tile", 7}});
  EXPECT_EQ(decisions.Choose("tile", 3), 2);
}

TEST(DecisionsTest, NeighboursChangeOneDecisionTheBestWaysFirst) {
  Decisions decisions;
  decisions.Choose("tile", 3);
  decisions.Choose("order", 2);
  EXPECT_THAT(decisions.Neighbours(), ElementsAre(Deviations{{"tile", 1}}, Deviations{{"order", 1}},
                                                  Deviations{{"tile", 2}}));
}

TEST(DecisionsTest, NeighboursOfADeviationGoBackToo) {
  Decisions decisions({{"tile", 1}, {"never asked", 1}});
  decisions.Choose("tile", 2);
  decisions.Choose("order", 2);
  EXPECT_THAT(decisions.Neighbours(),
              ElementsAre(Deviations{}, Deviations{{"tile", 1}, {"order", 1}}));
}

std::string ScheduleWith(const FormulaKernel& k, const Target& target, Deviations deviations) {
  Decisions decisions(std::move(deviations));
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s, decisions);
  return ActionsToString(s.actions());
}

TEST(DecisionsTest, AProductHasOtherTilesAndWhatFollowsFitsThem) {
  const FormulaKernel k = MatmulKernel(512, 512, 512);
  const Target target = Avx512Target();
  Decisions decisions;
  Scheduler s(*k.graph, k.sink, target);
  ApplyHeuristic(s, decisions);
  std::set<std::string> schedules = {ActionsToString(s.actions())};
  std::set<std::string> names;
  for (const Decisions::Taken& t : decisions.taken()) names.insert(t.name);
  for (const char* name : {"product-tile", "steps", "cache-tile", "divided-axis", "threads"}) {
    EXPECT_THAT(names, Contains(name));
  }
  for (const Deviations& d : decisions.Neighbours()) schedules.insert(ScheduleWith(k, target, d));
  EXPECT_GT(schedules.size(), 20u);
  // Without the step that packs, the loops of the tile are still divided among the cores.
  const std::string unpacked = ScheduleWith(k, target, {{"cache-tile", 1}});
  EXPECT_EQ(unpacked.find("LOCAL"), std::string::npos) << unpacked;
  EXPECT_NE(unpacked.find("THREAD"), std::string::npos) << unpacked;
}

}  // namespace
}  // namespace quern
