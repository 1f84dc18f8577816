#include "runtime/part_by_part.h"

#include <atomic>
#include <vector>

#include "runtime/poll.h"

namespace quern {
namespace {

// On a line of its own.
struct alignas(64) Counter {
  std::atomic<int64_t> value{0};
};

}  // namespace

void RunPartByPart(ThreadTeam& team, const Parts& parts,
                   absl::FunctionRef<void(int64_t, int64_t, int64_t)> body) {
  Counter taken;
  // By phase: how many parts, from the first one on, have finished it. (Not of the last phase, for
  // which none waits.)
  std::vector<Counter> finished(static_cast<size_t>(parts.phases));
  team.Run(parts.at_once, [&](int64_t worker) {
    for (;;) {
      const int64_t part = taken.value.fetch_add(1, std::memory_order_relaxed);
      if (part >= parts.count) return;
      for (int64_t phase = 0; phase < parts.phases; ++phase) {
        body(phase, part, worker);
        if (phase + 1 == parts.phases) break;
        std::atomic<int64_t>& before = finished[static_cast<size_t>(phase)].value;
        for (Poll poll; before.load(std::memory_order_acquire) != part;) poll.Wait();
        before.store(part + 1, std::memory_order_release);
      }
    }
  });
}

}  // namespace quern
