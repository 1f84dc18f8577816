#include <algorithm>
#include <cmath>

#include "bench/suite/reference_sampling.h"

namespace quern {
namespace {

constexpr int64_t kHeads = 8, kQueries = 32;

// softmax of the products of query `q` with all keys, in double precision.
std::vector<double> Weights(const Workload& w, const float* q, const float* keys) {
  std::vector<double> weights(static_cast<size_t>(w.n));
  for (int64_t j = 0; j < w.n; ++j) {
    double sum = 0;
    for (int64_t d = 0; d < w.k; ++d) sum += static_cast<double>(q[d]) * keys[j * w.k + d];
    weights[j] = sum / std::sqrt(static_cast<double>(w.k));
  }
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

std::string CheckAttention(const Workload& w, const Buffers& buffers) {
  for (int64_t h : Chosen(w.batch, kHeads)) {
    const float* keys = buffers.Get("K") + h * w.n * w.k;
    const float* values = buffers.Get("V") + h * w.n * w.k;
    for (int64_t i : Chosen(w.m, kQueries)) {
      const int64_t row = (h * w.m + i) * w.k;
      const std::vector<double> weights = Weights(w, buffers.Get("Q") + row, keys);
      for (int64_t d = 0; d < w.k; ++d) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < w.n; ++j) {
          const double term = weights[j] * values[j * w.k + d];
          sum += term;
          size += std::abs(term);
        }
        // Weights are right to some units, and no two errors need have the same sign.
        const std::string wrong = Compare(w, buffers, row + d, {sum, 32 * kEpsilon * size});
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "ok";
}

}  // namespace quern
