#ifndef QUERN_RUNTIME_ENQUEUE_TASK_H_
#define QUERN_RUNTIME_ENQUEUE_TASK_H_

#include <tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace quern {

// Counts tasks that were handed over: what was written before is seen by who reads it.
inline std::atomic<int64_t> handed_over_tasks{0};

template <typename Work>
void RunHandedOver(Work* work) {
  handed_over_tasks.load(std::memory_order_acquire);
  const std::unique_ptr<Work> owned(work);
  (*owned)();
}

/// arena.enqueue(work), in a way that ThreadSanitizer follows. It does not see how oneTBB, which is
/// not built for it, orders its tasks; so the reading of the one pointer in a task is kept from it,
/// and a counter of our own says that the work was written before.
template <typename Work>
void EnqueueTask(tbb::task_arena& arena, Work work) {
  auto* owned = new Work(std::move(work));
  handed_over_tasks.fetch_add(1, std::memory_order_release);
#if defined(__clang__)
  arena.enqueue([owned]() __attribute__((no_sanitize("thread"))) { RunHandedOver(owned); });
#else
  arena.enqueue([owned] { RunHandedOver(owned); });
#endif
}

}  // namespace quern

#endif  // QUERN_RUNTIME_ENQUEUE_TASK_H_
