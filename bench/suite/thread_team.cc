#include "bench/suite/thread_team.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

namespace quern {
namespace {

// About as long as a short kernel runs: who is called in a row need not be woken up.
constexpr int kSpins = 20000;

void WaitForChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
  }
  value.wait(old, std::memory_order_acquire);
}

struct Helper {
  std::atomic<uint32_t> started{0};
  std::atomic<uint32_t> finished{0};
  std::function<void()> work;

  void Loop() {
    for (uint32_t round = 0;; ++round) {
      WaitForChange(started, round);
      work();
      finished.store(round + 1, std::memory_order_release);
      finished.notify_one();
    }
  }
};

// Never destroyed: helpers wait until the process ends.
Helper& HelperAt(size_t index) {
  static auto& helpers = *new std::deque<Helper>();
  while (helpers.size() <= index) {
    Helper& helper = helpers.emplace_back();
    std::thread([&helper] { helper.Loop(); }).detach();
  }
  return helpers[index];
}

}  // namespace

void InParallel(int threads, int64_t count, int64_t step,
                const std::function<void(int64_t begin, int64_t end)>& body) {
  const int64_t steps = (count + step - 1) / step;
  threads = static_cast<int>(std::clamp<int64_t>(steps, 1, threads));
  const auto bound = [&](int part) { return std::min(count, steps * part / threads * step); };
  for (int t = 1; t < threads; ++t) {
    Helper& helper = HelperAt(t - 1);
    helper.work = [&body, begin = bound(t), end = bound(t + 1)] { body(begin, end); };
    helper.started.fetch_add(1, std::memory_order_release);
    helper.started.notify_one();
  }
  body(0, bound(1));
  for (int t = 1; t < threads; ++t) {
    Helper& helper = HelperAt(t - 1);
    const uint32_t round = helper.started.load(std::memory_order_relaxed);
    WaitForChange(helper.finished, round - 1);
  }
}

}  // namespace quern
