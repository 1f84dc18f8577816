#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bench/suite/peer.h"
#include "bench/suite/thread_team.h"

namespace quern {
namespace {

// Every loop computes rows or elements `begin` to `end` of the workload.

void MulAdd(const float* a, const float* b, const float* c, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) y[i] = a[i] * b[i] + c[i];
}

float SumOf(const float* x, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

void ColumnSum(const float* x, float* s, int64_t rows, int64_t n, int64_t begin, int64_t end) {
  std::fill(s + begin, s + end, 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = begin; j < end; ++j) s[j] += x[i * n + j];
  }
}

void SoftmaxRow(const float* x, float* y, int64_t n) {
  float largest = x[0];
  for (int64_t j = 1; j < n; ++j) largest = x[j] > largest ? x[j] : largest;
  float sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    y[j] = std::exp(x[j] - largest);
    sum += y[j];
  }
  const float scale = 1 / sum;
  for (int64_t j = 0; j < n; ++j) y[j] *= scale;
}

void LayerNormRow(const float* x, const float* g, const float* b, float* y, int64_t n) {
  const float mean = SumOf(x, n) / static_cast<float>(n);
  float variance = 0;
  for (int64_t j = 0; j < n; ++j) variance += (x[j] - mean) * (x[j] - mean);
  const float scale = 1 / std::sqrt(variance / static_cast<float>(n) + 0.00001f);
  for (int64_t j = 0; j < n; ++j) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}

float SumOfSquares(const float* x, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

void RmsNormRow(const float* x, const float* g, float* y, int64_t n) {
  const float scale = 1 / std::sqrt(SumOfSquares(x, n) / static_cast<float>(n) + 0.00001f);
  for (int64_t j = 0; j < n; ++j) y[j] = x[j] * scale * g[j];
}

// The largest first: both loops are vectorised, one that carries the place along is not.
int32_t ArgMax(const float* x, int64_t n) {
  float largest = x[0];
  for (int64_t j = 1; j < n; ++j) largest = x[j] > largest ? x[j] : largest;
  int32_t first = INT32_MAX;
  for (int64_t j = 0; j < n; ++j) {
    const int32_t place = x[j] == largest ? static_cast<int32_t>(j) : INT32_MAX;
    first = place < first ? place : first;
  }
  return first;
}

// In blocks, as anybody would write it who has tried it once without.
void Transpose(const float* x, float* y, int64_t m, int64_t n, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 16;
  for (int64_t i = begin; i < end; i += kBlock) {
    for (int64_t j = 0; j < m; j += kBlock) {
      for (int64_t bi = i; bi < std::min(i + kBlock, end); ++bi) {
        for (int64_t bj = j; bj < std::min(j + kBlock, m); ++bj) y[bi * m + bj] = x[bj * n + bi];
      }
    }
  }
}

// C = A·B or A·x by the order of loops that runs along rows.
void Product(const Workload& w, const float* a, const float* b, float* c, int64_t begin,
             int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float* row = c + i * w.n;
    if (w.n == 1) {
      float sum = 0;
      for (int64_t k = 0; k < w.k; ++k) sum += a[i * w.k + k] * b[k];
      row[0] = sum;
      continue;
    }
    std::fill(row, row + w.n, 0.0f);
    for (int64_t k = 0; k < w.k; ++k) {
      const float factor = a[i * w.k + k];
      for (int64_t j = 0; j < w.n; ++j) row[j] += factor * b[k * w.n + j];
    }
  }
}

std::function<void()> BindProduct(const Workload& w, const Buffers& buffers, int threads) {
  // Beyond small sizes these loops only show how slow they are.
  const bool small = w.flops < 1e8;
  if (w.dtype != "f32" || w.batch > 1 || w.transposed_a || w.transposed_b || !small) return {};
  const float* a = buffers.Get("A");
  const float* b = buffers.Get("B");
  float* c = buffers.Get("C");
  if (w.flops < 1e6) threads = 1;
  return [=] {
    InParallel(threads, w.m, 1,
               [&](int64_t begin, int64_t end) { Product(w, a, b, c, begin, end); });
  };
}

// `sum` of each thread's part, added.
template <typename Sum>
float InParts(const Sum& sum, const float* x, int64_t count, int threads) {
  // One cell per part, a cache line apart.
  constexpr int64_t kApart = 16;
  std::vector<float> parts(threads * kApart);
  const int64_t share = (count + threads - 1) / threads;
  InParallel(threads, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      parts[p * kApart] = sum(x + p * share, std::min(share, count - p * share));
    }
  });
  return SumOf(parts.data(), threads * kApart);
}

std::function<void()> BindRows(const Workload& w, const Buffers& buffers, int threads) {
  const float* x = buffers.Get("X");
  float* y = buffers.Get(w.output);
  switch (w.kind) {
    case WorkloadKind::kSum:
      return [=] { *y = InParts(SumOf, x, w.m, threads); };
    case WorkloadKind::kNorm:
      return [=] { *y = std::sqrt(InParts(SumOfSquares, x, w.m * w.n, threads)); };
    case WorkloadKind::kRowSum:
      return [=] {
        InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) y[i] = SumOf(x + i * w.n, w.n);
        });
      };
    case WorkloadKind::kArgMax: {
      auto* a = buffers.Get<int32_t>(w.output);
      return [=] {
        InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) a[i] = ArgMax(x + i * w.n, w.n);
        });
      };
    }
    case WorkloadKind::kColumnSum:
      return [=] {
        InParallel(threads, w.n, 16,
                   [&](int64_t begin, int64_t end) { ColumnSum(x, y, w.m, w.n, begin, end); });
      };
    case WorkloadKind::kSoftmax:
      return [=] {
        InParallel(threads, w.m, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) SoftmaxRow(x + i * w.n, y + i * w.n, w.n);
        });
      };
    case WorkloadKind::kLayerNorm: {
      const float* g = buffers.Get("g");
      const float* b = buffers.Get("b");
      return [=] {
        InParallel(threads, w.m, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) LayerNormRow(x + i * w.n, g, b, y + i * w.n, w.n);
        });
      };
    }
    case WorkloadKind::kRmsNorm: {
      const float* g = buffers.Get("g");
      return [=] {
        InParallel(threads, w.m, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) RmsNormRow(x + i * w.n, g, y + i * w.n, w.n);
        });
      };
    }
    case WorkloadKind::kTranspose:
      return [=] {
        InParallel(threads, w.n, 16,
                   [&](int64_t begin, int64_t end) { Transpose(x, y, w.m, w.n, begin, end); });
      };
    default:
      return {};
  }
}

std::function<void()> Bind(const Workload& w, const Buffers& buffers, int threads) {
  switch (w.kind) {
    case WorkloadKind::kGemm:
      return BindProduct(w, buffers, threads);
    case WorkloadKind::kConvolution:
      return PlainConvolution(w, buffers, threads);
    case WorkloadKind::kAttention:
      return {};
    case WorkloadKind::kMulAdd:
      return [=, a = buffers.Get("A"), b = buffers.Get("B"), c = buffers.Get("C"),
              y = buffers.Get("Y")] {
        InParallel(threads, w.m, 16,
                   [&](int64_t begin, int64_t end) { MulAdd(a, b, c, y, begin, end); });
      };
    default:
      return BindRows(w, buffers, threads);
  }
}

}  // namespace

Peer PlainLoopsPeer() {
  Peer peer;
  peer.name = "plain C";
  peer.details = "-O3 -march=native -ffast-math, " __VERSION__;
  peer.found = true;
  peer.set_threads = [](int) {};
  peer.bind = [name = peer.name](const Workload& w, const Buffers& buffers, int threads) {
    if (w.kind == WorkloadKind::kCumulativeSum) return PlainCumulativeSums(w, buffers, threads);
    return Peer::Single(name, Bind(w, buffers, threads));
  };
  return peer;
}

}  // namespace quern
