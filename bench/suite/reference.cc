#include "bench/suite/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "rewrite/concat.h"
#include "runtime/random_data.h"

namespace quern {
namespace {

constexpr double kEpsilon = 0x1p-24;  // half an f32 unit in the last place, relative
constexpr double kSmallWork = 1 << 24;
constexpr int64_t kGrid = 48;

struct Expected {
  double value = 0;
  double tolerance = 0;
};

// A sum in f32 of `terms` terms: rounding errors walk at random in the size of the partial sums,
// which itself is that of a random walk for data around zero.
double SumTolerance(double terms, double squares) {
  return kEpsilon * (8 + 4 * std::sqrt(terms)) * std::sqrt(squares);
}

int64_t OutputElements(const Workload& w) {
  switch (w.kind) {
    case WorkloadKind::kSum:
      return 1;
    case WorkloadKind::kRowSum:
      return w.m;
    case WorkloadKind::kColumnSum:
      return w.n;
    default:
      return w.m * w.n * w.batch;
  }
}

ScalarType OutputType(const Workload& w) {
  return w.dtype == "u8s8" ? ScalarType::kI32 : ScalarType::kF32;
}

// All of 0..size-1, or kGrid of them with both ends.
std::vector<int64_t> Chosen(int64_t size, bool all) {
  std::vector<int64_t> chosen;
  if (all || size <= kGrid) {
    for (int64_t i = 0; i < size; ++i) chosen.push_back(i);
    return chosen;
  }
  std::mt19937_64 random(static_cast<uint64_t>(size));
  chosen = {0, 1, size - 2, size - 1};
  while (static_cast<int64_t>(chosen.size()) < kGrid) {
    chosen.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(size)));
  }
  return chosen;
}

Expected Product(const Workload& w, const Buffers& buffers, int64_t b, int64_t i, int64_t j,
                 bool bare) {
  const ScalarType ta = w.dtype == "f32"    ? ScalarType::kF32
                        : w.dtype == "bf16" ? ScalarType::kBF16
                                            : ScalarType::kU8;
  const ScalarType tb = w.dtype == "u8s8" ? ScalarType::kI8 : ta;
  const void* a = buffers.Get<void>("A");
  const void* bb = buffers.Get<void>("B");
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < w.k; ++k) {
    const int64_t at_a = b * w.m * w.k + (w.transposed_a ? k * w.m + i : i * w.k + k);
    const int64_t at_b = b * w.k * w.n + (w.transposed_b ? j * w.k + k : k * w.n + j);
    const double term = ElementAsDouble(ta, a, at_a) * ElementAsDouble(tb, bb, at_b);
    sum += term;
    squares += term * term;
  }
  if (w.dtype == "u8s8") return {sum, 0};
  Expected expected{sum, SumTolerance(static_cast<double>(w.k), squares)};
  if (w.bias_gelu && !bare) {
    const double x = sum + buffers.Get("b")[j];
    expected.value = 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    expected.tolerance = 2 * expected.tolerance + 8 * kEpsilon * (1 + std::abs(x));
  }
  return expected;
}

std::string Compare(const Workload& w, const Buffers& buffers, int64_t at,
                    const Expected& expected) {
  const double got = ElementAsDouble(OutputType(w), buffers.Get<void>(w.output()), at);
  if (std::abs(got - expected.value) <= expected.tolerance) return "";
  return Concat("element ", at, " is ", got, ", not ", expected.value);
}

std::string CheckProduct(const Workload& w, const Buffers& buffers, bool bare) {
  const bool all = w.flops() <= 2 * kSmallWork;
  const std::vector<int64_t> rows = Chosen(w.m, all), columns = Chosen(w.n, all);
  for (int64_t b = 0; b < w.batch; ++b) {
    for (int64_t i : rows) {
      for (int64_t j : columns) {
        const std::string wrong =
            Compare(w, buffers, (b * w.m + i) * w.n + j, Product(w, buffers, b, i, j, bare));
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "ok";
}

// The sum of `count` numbers, `stride` apart.
Expected Sum(const float* x, int64_t count, int64_t stride) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double term = x[i * stride];
    sum += term;
    squares += term * term;
  }
  return {sum, SumTolerance(static_cast<double>(count), squares)};
}

// What row `i` must be, for outputs of whole rows.
std::vector<Expected> Row(const Workload& w, const Buffers& buffers, int64_t i) {
  std::vector<Expected> row(static_cast<size_t>(w.n));
  const float* x = buffers.Get("X") + i * w.n;
  if (w.kind == WorkloadKind::kSoftmax) {
    const double largest = *std::max_element(x, x + w.n);
    double sum = 0;
    for (int64_t j = 0; j < w.n; ++j) sum += row[j].value = std::exp(x[j] - largest);
    for (Expected& e : row) e = {e.value / sum, 64 * kEpsilon * e.value / sum};
    return row;
  }
  double mean = 0, variance = 0;
  for (int64_t j = 0; j < w.n; ++j) mean += x[j];
  mean /= static_cast<double>(w.n);
  for (int64_t j = 0; j < w.n; ++j) variance += (x[j] - mean) * (x[j] - mean);
  variance /= static_cast<double>(w.n);
  for (int64_t j = 0; j < w.n; ++j) {
    const double scaled = (x[j] - mean) / std::sqrt(variance + 0.00001) * buffers.Get("g")[j];
    row[j] = {scaled + buffers.Get("b")[j], 64 * kEpsilon * (1 + std::abs(scaled))};
  }
  return row;
}

std::string CheckElementwise(const Workload& w, const Buffers& buffers) {
  for (int64_t i = 0; i < w.m; i += i + 4099 < w.m ? 4099 : 1) {
    const double ab = static_cast<double>(buffers.Get("A")[i]) * buffers.Get("B")[i];
    const double c = buffers.Get("C")[i];
    const double tolerance = 2 * kEpsilon * (std::abs(ab) + std::abs(c));
    const std::string wrong = Compare(w, buffers, i, {ab + c, tolerance});
    if (!wrong.empty()) return wrong;
  }
  return "ok";
}

std::string CheckRest(const Workload& w, const Buffers& buffers) {
  if (w.kind == WorkloadKind::kMulAdd) return CheckElementwise(w, buffers);
  const float* x = buffers.Get("X");
  std::string wrong;
  if (w.kind == WorkloadKind::kSum) {
    wrong = Compare(w, buffers, 0, Sum(x, w.m, 1));
  } else if (w.kind == WorkloadKind::kColumnSum) {
    for (int64_t j : Chosen(w.n, false)) {
      if (wrong.empty()) wrong = Compare(w, buffers, j, Sum(x + j, w.m, w.n));
    }
  } else if (w.kind == WorkloadKind::kTranspose) {
    for (int64_t i : Chosen(w.m, false)) {
      for (int64_t j = 0; j < w.n && wrong.empty(); ++j) {
        wrong = Compare(w, buffers, i * w.n + j, {x[j * w.m + i], 0});
      }
    }
  } else {
    for (int64_t i : Chosen(w.m, false)) {
      if (w.kind == WorkloadKind::kRowSum) {
        if (wrong.empty()) wrong = Compare(w, buffers, i, Sum(x + i * w.n, w.n, 1));
        continue;
      }
      const std::vector<Expected> row = Row(w, buffers, i);
      for (int64_t j = 0; j < w.n && wrong.empty(); ++j) {
        wrong = Compare(w, buffers, i * w.n + j, row[j]);
      }
    }
  }
  return wrong.empty() ? "ok" : wrong;
}

}  // namespace

std::string CheckOutput(const Workload& workload, const Buffers& buffers, bool bare) {
  if (OutputType(workload) == ScalarType::kF32) {
    const float* output = buffers.Get(workload.output());
    for (int64_t i = 0; i < OutputElements(workload); ++i) {
      if (!std::isfinite(output[i])) return Concat("element ", i, " is not a number");
    }
  }
  return workload.is_product() ? CheckProduct(workload, buffers, bare)
                               : CheckRest(workload, buffers);
}

void PoisonOutput(const Workload& workload, const Buffers& buffers) {
  FillPoison(OutputType(workload), OutputElements(workload), buffers.Get<void>(workload.output()));
}

}  // namespace quern
