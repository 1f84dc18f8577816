#ifndef QUERN_BENCH_SUITE_THREAD_TEAM_H_
#define QUERN_BENCH_SUITE_THREAD_TEAM_H_

#include <cstdint>
#include <functional>

namespace quern {

/// Threads for peers that bring none along. Calls `body(begin, end)` for `threads` equal parts of
/// 0..count-1, each a multiple of `step` but the last, and waits for all. The helpers sleep between
/// calls, so that they do not disturb what else is timed.
void InParallel(int threads, int64_t count, int64_t step,
                const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_THREAD_TEAM_H_
