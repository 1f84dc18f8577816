#ifndef QUERN_OPTIMIZER_PARALLEL_FOR_H_
#define QUERN_OPTIMIZER_PARALLEL_FOR_H_

#include <tbb/parallel_for.h>

#include <atomic>
#include <cstddef>

namespace quern {

/// Calls `body(i)` for 0 ≤ i < count on all threads, in any order. The calls see what the caller
/// wrote before, and the caller sees what they wrote. oneTBB promises that already; the counters
/// say it once more in a way that ThreadSanitizer sees, for which oneTBB's library is not built.
template <typename Body>
void ParallelFor(size_t count, const Body& body) {
  std::atomic<size_t> begun{0};
  std::atomic<size_t> done{0};
  begun.store(1, std::memory_order_release);
  tbb::parallel_for(size_t{0}, count, [&](size_t i) {
    begun.load(std::memory_order_acquire);
    body(i);
    done.fetch_add(1, std::memory_order_release);
  });
  done.load(std::memory_order_acquire);
}

}  // namespace quern

#endif  // QUERN_OPTIMIZER_PARALLEL_FOR_H_
