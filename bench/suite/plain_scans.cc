#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bench/suite/peer.h"
#include "bench/suite/thread_team.h"

namespace quern {
namespace {

// Both give the running sum of x[0..count) that begins with `sum`, and return the last of it.

float PartialSum(const float* x, float* y, int64_t count, float sum) {
  for (int64_t i = 0; i < count; ++i) y[i] = sum += x[i];
  return sum;
}

using Vector = float __attribute__((vector_size(64), aligned(4)));

// Sixteen at a time: four shifts and additions, then the sum of all that came before.
float VectorSum(const float* x, float* y, int64_t count, float sum) {
  const Vector zero = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    Vector v = *reinterpret_cast<const Vector*>(x + i);
    v += __builtin_shufflevector(zero, v, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                 29, 30);
    v += __builtin_shufflevector(zero, v, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                 28, 29);
    v += __builtin_shufflevector(zero, v, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                 26, 27);
    v += __builtin_shufflevector(zero, v, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                 23);
    *reinterpret_cast<Vector*>(y + i) = v + sum;
    sum += v[15];
  }
  return PartialSum(x + i, y + i, count - i, sum);
}

template <typename Sum>
void Rows(const Workload& w, const float* x, float* y, int threads, const Sum& sum) {
  if (w.m > 1 || threads == 1) {
    InParallel(threads, w.m, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum(x + i * w.n, y + i * w.n, w.n, 0.0f);
    });
    return;
  }
  // One row: the totals of the threads' parts first.
  std::vector<float> totals(threads, 0.0f);
  const int64_t share = (w.n + threads - 1) / threads;
  const auto part = [&](int64_t p, const auto& body) {
    const int64_t begin = std::min(w.n, p * share);
    body(begin, std::min(w.n, begin + share) - begin);
  };
  InParallel(threads, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      part(p, [&](int64_t first, int64_t count) {
        float total = 0;
        for (int64_t i = 0; i < count; ++i) total += x[first + i];
        totals[p] = total;
      });
    }
  });
  InParallel(threads, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const float before = std::accumulate(totals.begin(), totals.begin() + p, 0.0f);
      part(p, [&](int64_t first, int64_t count) { sum(x + first, y + first, count, before); });
    }
  });
}

}  // namespace

std::vector<PeerCall> PlainCumulativeSums(const Workload& w, const Buffers& buffers, int threads) {
  const float* x = buffers.Get("X");
  float* y = buffers.Get(w.output);
  return {{.name = "plain C", .call = [=] { Rows(w, x, y, threads, PartialSum); }, .finish = {}},
          {.name = "C vectors", .call = [=] { Rows(w, x, y, threads, VectorSum); }, .finish = {}}};
}

}  // namespace quern
