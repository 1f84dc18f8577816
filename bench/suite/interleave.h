#ifndef QUERN_BENCH_SUITE_INTERLEAVE_H_
#define QUERN_BENCH_SUITE_INTERLEAVE_H_

#include <functional>
#include <vector>

namespace quern {

/// Seconds of single calls, by candidate. All take turns in random order, so that they meet the
/// same state of the machine, and rest before each turn until the threads of the one before have
/// gone to sleep. A turn is untimed calls, to warm caches and, with more than one of `threads`, to
/// let them find their cores, and a timed sample of as many calls as make it long enough to be
/// measured. Each candidate gets about `seconds` of
/// samples.
std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& calls,
                                                 int threads, double seconds);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_INTERLEAVE_H_
