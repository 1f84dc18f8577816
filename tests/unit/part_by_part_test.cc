#include "runtime/part_by_part.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace quern {
namespace {

struct Shape {
  int cores;
  Parts parts;
};

// More workers than cores, more workers than parts, one phase, one part: all of it in order.
TEST(PartByPartTest, EachPhaseOfAPartWaitsForThePartsBefore) {
  for (const Shape& shape : {Shape{1, {2, 7, 3}}, Shape{2, {2, 64, 2}}, Shape{4, {3, 41, 4}},
                             Shape{2, {2, 3, 8}}, Shape{2, {1, 9, 2}}, Shape{2, {4, 1, 2}}}) {
    const Parts& parts = shape.parts;
    ThreadTeam team(shape.cores);
    for (int launch = 0; launch < 50; ++launch) {
      std::vector<std::atomic<int64_t>> reached(static_cast<size_t>(parts.count));
      std::vector<std::atomic<bool>> busy(static_cast<size_t>(parts.at_once));
      std::atomic<int> wrong{0};
      RunPartByPart(team, parts, [&](int64_t phase, int64_t part, int64_t worker) {
        wrong += busy[static_cast<size_t>(worker)].exchange(true) ? 1 : 0;
        for (int64_t before = 0; before < part; ++before) {
          wrong += reached[static_cast<size_t>(before)] < phase ? 1 : 0;
        }
        wrong += reached[static_cast<size_t>(part)] != phase ? 1 : 0;
        reached[static_cast<size_t>(part)] = phase + 1;
        busy[static_cast<size_t>(worker)] = false;
      });
      EXPECT_EQ(wrong, 0);
      for (const std::atomic<int64_t>& r : reached) EXPECT_EQ(r, parts.phases);
    }
  }
}

// A part that takes long holds up those that need it, and nothing breaks.
TEST(PartByPartTest, ASlowPart) {
  ThreadTeam team(2);
  std::vector<int64_t> totals(16);
  std::vector<int64_t> before(16);
  RunPartByPart(team, {.phases = 2, .count = 16, .at_once = 2},
                [&](int64_t phase, int64_t part, int64_t) {
                  const auto p = static_cast<size_t>(part);
                  if (phase == 0) {
                    if (part % 5 == 2) std::this_thread::sleep_for(std::chrono::milliseconds(3));
                    totals[p] = part + 1;
                  } else {
                    for (size_t i = 0; i < p; ++i) before[p] += totals[i];
                  }
                });
  for (int64_t part = 0; part < 16; ++part) {
    EXPECT_EQ(before[static_cast<size_t>(part)], part * (part + 1) / 2);
  }
}

}  // namespace
}  // namespace quern
