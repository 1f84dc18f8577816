#include "bench/suite/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "bench/suite/reference_sampling.h"
#include "rewrite/concat.h"
#include "runtime/random_data.h"

namespace quern {
namespace {

constexpr double kSmallWork = 1 << 24;
constexpr int64_t kGrid = 48;

ScalarType OutputType(const Workload& w) {
  const bool integer = w.dtype == "u8s8" || w.kind == WorkloadKind::kArgMax;
  return integer ? ScalarType::kI32 : ScalarType::kF32;
}

// Turns what a product must be into what its tail makes of it.
void AddTail(const Workload& w, const Buffers& buffers, int64_t i, int64_t j, Expected& expected) {
  if (w.tail == Tail::kRelu) expected.value = std::max(expected.value, 0.0);
  if (w.tail == Tail::kBiasGelu) {
    const double x = expected.value + buffers.Get("b")[j];
    expected.value = 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    expected.tolerance = 2 * expected.tolerance + 8 * kEpsilon * (1 + std::abs(x));
  }
  if (w.tail == Tail::kBiasResidual) {
    const double added = static_cast<double>(buffers.Get("b")[j]) + buffers.Get("R")[i * w.n + j];
    expected.value += added;
    expected.tolerance += 4 * kEpsilon * (std::abs(expected.value) + std::abs(added));
  }
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
  if (!bare) AddTail(w, buffers, i, j, expected);
  return expected;
}

std::string CheckProduct(const Workload& w, const Buffers& buffers, bool bare) {
  const bool all = w.flops <= 2 * kSmallWork;
  const std::vector<int64_t> rows = Chosen(w.m, all ? w.m : kGrid);
  const std::vector<int64_t> columns = Chosen(w.n, all ? w.n : kGrid);
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

// Every element, because an error anywhere stays in all that follow.
std::string CheckCumulativeSum(const Workload& w, const Buffers& buffers, int64_t row) {
  const float* x = buffers.Get("X") + row * w.n;
  double sum = 0, squares = 0;
  std::string wrong;
  for (int64_t j = 0; j < w.n && wrong.empty(); ++j) {
    sum += x[j];
    squares += static_cast<double>(x[j]) * x[j];
    const double tolerance = SumTolerance(static_cast<double>(j + 1), squares);
    wrong = Compare(w, buffers, row * w.n + j, {sum, tolerance});
  }
  return wrong;
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
  if (w.kind == WorkloadKind::kRmsNorm) {
    double square = 0;
    for (int64_t j = 0; j < w.n; ++j) square += static_cast<double>(x[j]) * x[j];
    const double scale = 1 / std::sqrt(square / static_cast<double>(w.n) + 0.00001);
    for (int64_t j = 0; j < w.n; ++j) {
      const double scaled = x[j] * scale * buffers.Get("g")[j];
      row[j] = {scaled, 64 * kEpsilon * std::abs(scaled)};
    }
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

// The root of the sum of squares. Partial sums only grow, so that errors walk in steps of its size.
Expected Norm(const float* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double root = std::sqrt(sum);
  return {root, kEpsilon * (8 + 4 * std::sqrt(static_cast<double>(count))) * root};
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
  } else if (w.kind == WorkloadKind::kNorm) {
    wrong = Compare(w, buffers, 0, Norm(x, w.m * w.n));
  } else if (w.kind == WorkloadKind::kColumnSum) {
    for (int64_t j : Chosen(w.n, kGrid)) {
      if (wrong.empty()) wrong = Compare(w, buffers, j, Sum(x + j, w.m, w.n));
    }
  } else if (w.kind == WorkloadKind::kTranspose) {
    for (int64_t i : Chosen(w.m, kGrid)) {
      for (int64_t j = 0; j < w.n && wrong.empty(); ++j) {
        wrong = Compare(w, buffers, i * w.n + j, {x[j * w.m + i], 0});
      }
    }
  } else {
    for (int64_t i : Chosen(w.m, kGrid)) {
      if (w.kind == WorkloadKind::kRowSum) {
        if (wrong.empty()) wrong = Compare(w, buffers, i, Sum(x + i * w.n, w.n, 1));
        continue;
      }
      if (w.kind == WorkloadKind::kCumulativeSum) {
        if (wrong.empty()) wrong = CheckCumulativeSum(w, buffers, i);
        continue;
      }
      if (w.kind == WorkloadKind::kArgMax) {
        const float* row = x + i * w.n;
        const auto first = static_cast<double>(std::max_element(row, row + w.n) - row);
        if (wrong.empty()) wrong = Compare(w, buffers, i, {first, 0});
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

double SumTolerance(double terms, double squares) {
  return kEpsilon * (8 + 4 * std::sqrt(terms)) * std::sqrt(squares);
}

std::vector<int64_t> Chosen(int64_t size, int64_t grid) {
  std::vector<int64_t> chosen;
  if (size <= grid) {
    for (int64_t i = 0; i < size; ++i) chosen.push_back(i);
    return chosen;
  }
  std::mt19937_64 random(static_cast<uint64_t>(size));
  chosen = {0, 1, size - 2, size - 1};
  while (static_cast<int64_t>(chosen.size()) < grid) {
    chosen.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(size)));
  }
  return chosen;
}

std::string Compare(const Workload& w, const Buffers& buffers, int64_t at,
                    const Expected& expected) {
  const double got = ElementAsDouble(OutputType(w), buffers.Get<void>(w.output), at);
  if (std::abs(got - expected.value) <= expected.tolerance) return "";
  return Concat("element ", at, " is ", got, ", not ", expected.value);
}

std::string CheckOutput(const Workload& workload, const Buffers& buffers, bool bare) {
  if (OutputType(workload) == ScalarType::kF32) {
    const float* output = buffers.Get(workload.output);
    for (int64_t i = 0; i < workload.output_elements; ++i) {
      if (!std::isfinite(output[i])) return Concat("element ", i, " is not a number");
    }
  }
  switch (workload.kind) {
    case WorkloadKind::kGemm:
      return CheckProduct(workload, buffers, bare);
    case WorkloadKind::kConvolution:
      return CheckConvolution(workload, buffers);
    case WorkloadKind::kAttention:
      return CheckAttention(workload, buffers);
    default:
      return CheckRest(workload, buffers);
  }
}

void PoisonOutput(const Workload& workload, const Buffers& buffers) {
  FillPoison(OutputType(workload), workload.output_elements, buffers.Get<void>(workload.output));
}

}  // namespace quern
