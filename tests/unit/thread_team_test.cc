#include "runtime/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace quern {
namespace {

TEST(ThreadTeamTest, EachChunkRunsOnce) {
  ThreadTeam team(4);
  for (int64_t chunks : {0, 1, 2, 3, 4, 7, 100, 5, 2}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(chunks));
    team.Run(chunks, [&](int64_t chunk) { ++calls[static_cast<size_t>(chunk)]; });
    for (const std::atomic<int>& c : calls) EXPECT_EQ(c, 1) << chunks;
  }
}

TEST(ThreadTeamTest, WhatChunksWroteIsSeenAfterwards) {
  ThreadTeam team(3);
  std::vector<int64_t> values(3);
  for (int64_t launch = 0; launch < 20000; ++launch) {
    team.Run(3, [&](int64_t chunk) { values[static_cast<size_t>(chunk)] += chunk + 1; });
  }
  EXPECT_EQ(values, (std::vector<int64_t>{20000, 40000, 60000}));
}

TEST(ThreadTeamTest, WorkersThatWentToSleepComeBack) {
  ThreadTeam team(2);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int64_t> sum{0};
    team.Run(8, [&](int64_t chunk) { sum += chunk; });
    EXPECT_EQ(sum, 28);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Without a second thread in time the caller does both chunks, one after the other.
TEST(ThreadTeamTest, ASecondThreadHelps) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core only";
  ThreadTeam team(2);
  const std::thread::id caller = std::this_thread::get_id();
  bool helped = false;
  for (int launch = 0; launch < 1000 && !helped; ++launch) {
    std::vector<std::thread::id> ids(2);
    team.Run(2, [&](int64_t chunk) {
      ids[static_cast<size_t>(chunk)] = std::this_thread::get_id();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    helped = ids[0] != caller || ids[1] != caller;
  }
  EXPECT_TRUE(helped);
}

TEST(ThreadTeamTest, EachThreadHasATeam) {
  ThreadTeam* const own = &ThreadTeam::OfThisThread();
  EXPECT_EQ(own, &ThreadTeam::OfThisThread());
  ThreadTeam* other = nullptr;
  std::thread([&] {
    other = &ThreadTeam::OfThisThread();
    std::atomic<int64_t> sum{0};
    other->Run(3, [&](int64_t chunk) { sum += chunk; });
    EXPECT_EQ(sum, 3);
  }).join();
  EXPECT_NE(own, other);
}

TEST(ThreadTeamTest, SeveralCallersAtOnce) {
  ThreadTeam team(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int launch = 0; launch < 2000; ++launch) {
        team.Run(3, [&](int64_t chunk) { sum += chunk; });
      }
    });
  }
  for (std::thread& c : callers) c.join();
  EXPECT_EQ(sum, 4 * 2000 * 3);
}

TEST(ThreadTeamTest, ATeamMayEndWhileItsWorkersPoll) {
  for (int i = 0; i < 50; ++i) {
    ThreadTeam team(2);
    team.Run(2, [](int64_t) {});
  }
}

}  // namespace
}  // namespace quern
