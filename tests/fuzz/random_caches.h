#ifndef QUERN_TESTS_FUZZ_RANDOM_CACHES_H_
#define QUERN_TESTS_FUZZ_RANDOM_CACHES_H_

#include <vector>

#include "runtime/cpu_target.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// The machine's description, for half of the seeds with caches that the little kernels of these
/// tests overflow, so that what is done for large ones is done for them.
inline Target WithRandomCaches(Target target, uint64_t seed) {
  static const std::vector<int64_t> kBytes = {64, 128, 512, 2048};
  Random random(seed * 2 + 1);
  if (random.Chance(50)) return target;
  target.l1_bytes = random.Pick(kBytes);
  target.l2_bytes = target.l1_bytes * random.Between(2, 16);
  target.l3_bytes = target.l2_bytes * random.Between(2, 16);
  return target;
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_RANDOM_CACHES_H_
