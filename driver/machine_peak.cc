#include "driver/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/aligned_memory.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Runs `body(thread)` on that many threads at once and returns the seconds until the last is done.
template <typename Body>
double OnThreads(int threads, const Body& body) {
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  body(0);
  for (std::thread& t : others) t.join();
  return SecondsSince(begin);
}

// Enough chains to hide the latency of two FMA units, few enough to stay in registers.
constexpr int kChains = 12;

// `rounds` times kChains vectors of multiply-adds. Contraction makes them FMAs where the target has
// them.
template <typename Vector, typename T>
[[gnu::always_inline]] inline T Chains(int64_t rounds, T seed) {
#pragma clang fp contract(fast)
  Vector acc[kChains];
  Vector factor, addend;
  for (size_t lane = 0; lane < sizeof(Vector) / sizeof(T); ++lane) {
    factor[lane] = T(0.9999) - seed;
    addend[lane] = T(0.0001) + seed;
  }
  for (int c = 0; c < kChains; ++c) acc[c] = addend * T(c + 1);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c) acc[c] = acc[c] * factor + addend;
  }
  T total = 0;
  for (int c = 0; c < kChains; ++c) {
    for (size_t lane = 0; lane < sizeof(Vector) / sizeof(T); ++lane) total += acc[c][lane];
  }
  return total;
}

template <typename T>
struct Variant {
  T (*run)(int64_t rounds, T seed);
  int lanes;
};

template <typename T>
T RunNarrow(int64_t rounds, T seed) {
  typedef T Vector [[gnu::vector_size(16)]];
  return Chains<Vector, T>(rounds, seed);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2,fma")]] T RunAvx2(int64_t rounds, T seed) {
  typedef T Vector [[gnu::vector_size(32)]];
  return Chains<Vector, T>(rounds, seed);
}
template <typename T>
[[gnu::target("avx512f")]] T RunAvx512(int64_t rounds, T seed) {
  typedef T Vector [[gnu::vector_size(64)]];
  return Chains<Vector, T>(rounds, seed);
}
#endif

template <typename T>
Variant<T> WidestVariant() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {RunAvx512<T>, 64 / sizeof(T)};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {RunAvx2<T>, 32 / sizeof(T)};
  }
#endif
  return {RunNarrow<T>, 16 / sizeof(T)};
}

// Long enough to be measured, and to wake the wide units up.
constexpr int64_t kRounds = int64_t{1} << 20;

template <typename T>
LimitRun MultiplyAdds(int threads) {
  const Variant<T> variant = WidestVariant<T>();
  const auto call = [variant, threads] {
    OnThreads(threads, [&](int) {
      volatile T sink = variant.run(kRounds, static_cast<T>(1e-6));
      static_cast<void>(sink);
    });
  };
  return {call, 2.0 * kChains * variant.lanes * static_cast<double>(kRounds) * threads};
}

// The highest rate of `runs` calls.
double BestRate(const LimitRun& limit, int runs) {
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const Clock::time_point begin = Clock::now();
    limit.call();
    best = std::max(best, limit.amount / SecondsSince(begin));
  }
  return best;
}

typedef float StreamVector [[gnu::vector_size(64)]];

struct StreamArrays {
  AlignedMemory memory[3];
  int64_t part = 0;  // vectors of each thread

  StreamVector* Part(int array, int thread) const {
    return static_cast<StreamVector*>(memory[array].get()) + thread * part;
  }
};

}  // namespace

LimitRun MultiplyAddRun(DType dtype, int threads) {
  threads = std::max(threads, 1);
  return dtype.scalar == ScalarType::kF64 ? MultiplyAdds<double>(threads)
                                          : MultiplyAdds<float>(threads);
}

double MeasurePeakFlops(DType dtype, int threads) {
  constexpr int kRuns = 16;
  return BestRate(MultiplyAddRun(dtype, threads), kRuns);
}

std::vector<LimitRun> StreamRuns(int threads, int64_t cache_bytes) {
  threads = std::max(threads, 1);
  // Three arrays, together at least four times the last cache.
  const int64_t bytes = std::clamp<int64_t>(cache_bytes * 4 / 3, 32 << 20, 256 << 20);
  auto arrays = std::make_shared<StreamArrays>();
  arrays->part = bytes / 64 / threads;
  for (AlignedMemory& memory : arrays->memory) {
    memory = AllocateAligned(arrays->part * threads * 64);
    if (memory == nullptr) return {};
  }
  // Each thread first touches what it will use.
  OnThreads(threads, [&](int t) {
    for (int a = 0; a < 3; ++a)
      std::fill_n(arrays->Part(a, t), arrays->part, StreamVector{} + 1.0f);
  });
  const auto triad = [arrays, threads] {
    OnThreads(threads, [&](int t) {
      StreamVector* x = arrays->Part(0, t);
      const StreamVector* y = arrays->Part(1, t);
      const StreamVector* z = arrays->Part(2, t);
      for (int64_t i = 0; i < arrays->part; ++i) x[i] = y[i] + 0.5f * z[i];
    });
  };
  // Reading alone, because a store first fetches what it overwrites.
  const auto read = [arrays, threads] {
    OnThreads(threads, [&](int t) {
      const StreamVector* x = arrays->Part(0, t);
      StreamVector sum[4] = {};
      for (int64_t i = 0; i + 4 <= arrays->part; i += 4) {
        for (int j = 0; j < 4; ++j) sum[j] += x[i + j];
      }
      volatile float sink = (sum[0] + sum[1] + sum[2] + sum[3])[0];
      static_cast<void>(sink);
    });
  };
  const double one_array = static_cast<double>(arrays->part) * threads * 64;
  return {{triad, 3 * one_array}, {read, one_array}};
}

double MeasureBandwidth(int threads, int64_t cache_bytes) {
  constexpr int kRuns = 5;
  double best = 0;
  for (const LimitRun& run : StreamRuns(threads, cache_bytes)) {
    best = std::max(best, BestRate(run, kRuns));
  }
  return best;
}

}  // namespace quern
