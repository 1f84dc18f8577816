#include "driver/machine_peak.h"

#include <algorithm>
#include <chrono>
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

template <typename T>
double PeakFlops(int threads) {
  const Variant<T> variant = WidestVariant<T>();
  volatile T sink = 0;
  const auto flops = [&](int64_t rounds) {
    return 2.0 * kChains * variant.lanes * static_cast<double>(rounds) * threads;
  };
  int64_t rounds = 1 << 14;
  double best = 0;
  double spent = 0;
  for (int run = 0; run < 24 && spent < 0.25; ++run) {
    const double seconds =
        OnThreads(threads, [&](int) { sink = sink + variant.run(rounds, static_cast<T>(1e-6)); });
    spent += seconds;
    if (seconds < 0.005) {
      rounds *= 2;  // Too short to be measured, or to wake the wide units up.
      continue;
    }
    best = std::max(best, flops(rounds) / seconds);
  }
  return best;
}

}  // namespace

double MeasurePeakFlops(DType dtype, int threads) {
  threads = std::max(threads, 1);
  return dtype.scalar == ScalarType::kF64 ? PeakFlops<double>(threads) : PeakFlops<float>(threads);
}

double MeasureBandwidth(int threads, int64_t cache_bytes) {
  typedef float Vector [[gnu::vector_size(64)]];
  threads = std::max(threads, 1);
  // Three arrays, together at least four times the last cache.
  const int64_t bytes = std::clamp<int64_t>(cache_bytes * 4 / 3, 32 << 20, 256 << 20);
  const int64_t part = bytes / 64 / threads;
  AlignedMemory memory[3];
  Vector* array[3];
  for (int i = 0; i < 3; ++i) {
    memory[i] = AllocateAligned(part * threads * 64);
    if (memory[i] == nullptr) return 0;
    array[i] = static_cast<Vector*>(memory[i].get());
  }
  // Each thread first touches what it will use.
  OnThreads(threads, [&](int t) {
    for (Vector* a : array) std::fill_n(a + t * part, part, Vector{} + 1.0f);
  });
  const double one_array = static_cast<double>(part) * threads * 64;
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    double seconds = OnThreads(threads, [&](int t) {
      Vector* x = array[0] + t * part;
      const Vector* y = array[1] + t * part;
      const Vector* z = array[2] + t * part;
      for (int64_t i = 0; i < part; ++i) x[i] = y[i] + 0.5f * z[i];
    });
    best = std::max(best, 3 * one_array / seconds);
    // Reading alone, because a store first fetches what it overwrites.
    volatile float sink = 0;
    seconds = OnThreads(threads, [&](int t) {
      const Vector* x = array[0] + t * part;
      Vector sum[4] = {};
      for (int64_t i = 0; i + 4 <= part; i += 4) {
        for (int j = 0; j < 4; ++j) sum[j] += x[i + j];
      }
      sink = sink + (sum[0] + sum[1] + sum[2] + sum[3])[0];
    });
    best = std::max(best, one_array / seconds);
  }
  return best;
}

}  // namespace quern
