#ifndef QUERN_TESTS_FUZZ_FUZZ_SEEDS_H_
#define QUERN_TESTS_FUZZ_FUZZ_SEEDS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace quern {

struct FuzzSeeds {
  uint64_t first = 0;
  uint64_t count = 0;
};

/// How many random cases to run and where their seeds begin: QUERN_FUZZ_KERNELS and
/// QUERN_FUZZ_SEED, else `count` from 0. Printed, so that every log says what was run.
inline FuzzSeeds ReadFuzzSeeds(uint64_t count) {
  FuzzSeeds seeds{0, count};
  if (const char* text = std::getenv("QUERN_FUZZ_KERNELS"))
    seeds.count = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("QUERN_FUZZ_SEED"))
    seeds.first = std::strtoull(text, nullptr, 10);
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(seeds.first),
              static_cast<unsigned long long>(seeds.first + seeds.count - 1));
  return seeds;
}

/// Calls `run(seed)`, which says what is wrong or "", until five seeds have failed; how many did.
template <typename Run>
int RunSeeds(const FuzzSeeds& seeds, const Run& run) {
  constexpr int kMostFailures = 5;
  int failures = 0;
  for (uint64_t n = 0; n < seeds.count && failures < kMostFailures; ++n) {
    const std::string wrong = run(seeds.first + n);
    if (wrong.empty()) continue;
    ++failures;
    ADD_FAILURE() << wrong;
  }
  return failures;
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_FUZZ_SEEDS_H_
