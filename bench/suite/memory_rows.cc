// Kernels that do little with each element. Sizes well beyond last-level caches, so that the
// bandwidth of memory is what bounds them.

#include "bench/suite/workload.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

// `words` move between memory and processor, of four bytes each.
Workload Memory(std::string name, WorkloadKind kind, int64_t m, int64_t n, std::string output,
                int64_t outputs, int64_t words, std::string formula) {
  Workload w;
  w.name = std::move(name);
  w.kind = kind;
  w.m = m;
  w.n = n;
  w.formula = std::move(formula);
  w.sizes = n == 1 ? Concat("i=", m) : Concat("i=", m, ",j=", n);
  w.output = std::move(output);
  w.output_elements = outputs;
  w.bytes = 4 * static_cast<double>(words);
  return w;
}

// Y of `m` rows of `n`; a vector if there is only one.
Workload CumulativeSum(std::string name, int64_t m, int64_t n) {
  const bool vector = m == 1;
  Workload w = Memory(std::move(name), WorkloadKind::kCumulativeSum, m, n, "Y", m * n, 2 * m * n,
                      vector ? "Y[i] = sum[j](where(j <= i, X[j], 0))"
                             : "Y[r,i] = sum[j](where(j <= i, X[r,j], 0))");
  w.sizes = Concat(vector ? "" : Concat("r=", m, ","), "i=", n, ",j=", n);
  return w;
}

}  // namespace

Workload SoftmaxRows(std::string name, int64_t m, int64_t n) {
  return Memory(std::move(name), WorkloadKind::kSoftmax, m, n, "Y", m * n, 2 * m * n,
                "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])");
}

void AddMemoryBound(std::vector<Workload>& list) {
  using enum WorkloadKind;
  constexpr int64_t kMany = 1 << 24, kTall = 16384, kWide = 4096, kRow = 1024;
  list.push_back(
      Memory("a*b+c 16 M", kMulAdd, kMany, 1, "Y", kMany, 4 * kMany, "Y[i] = A[i]*B[i]+C[i]"));
  list.push_back(Memory("sum 16 M", kSum, kMany, 1, "s", 1, kMany, "s[] = sum[i](X[i])"));
  list.push_back(Memory("row sum", kRowSum, kTall, kWide, "s", kTall, kTall * kWide + kTall,
                        "s[i] = sum[j](X[i,j])"));
  list.push_back(Memory("column sum", kColumnSum, kTall, kWide, "s", kWide, kTall * kWide + kWide,
                        "s[j] = sum[i](X[i,j])"));
  list.push_back(SoftmaxRows("softmax rows", kTall, kRow));
  list.push_back(Memory(
      "layer norm rows", kLayerNorm, kTall, kRow, "Y", kTall * kRow, 2 * kTall * kRow + 2 * kRow,
      "m[i] = sum[j](X[i,j])/1024.0; v[i] = sum[j]((X[i,j]-m[i])*(X[i,j]-m[i]))/1024.0; "
      "Y[i,j] = (X[i,j]-m[i])/sqrt(v[i]+0.00001)*g[j]+b[j]"));
  list.push_back(Memory("rms norm rows", kRmsNorm, kTall, kRow, "Y", kTall * kRow,
                        2 * kTall * kRow + kRow,
                        "r[i] = sum[j](X[i,j]*X[i,j])/1024.0; "
                        "Y[i,j] = X[i,j]/sqrt(r[i]+0.00001)*g[j]"));
  list.push_back(Memory("argmax rows", kArgMax, kTall, kRow, "a", kTall, kTall * kRow + kTall,
                        "m[i] = max[j](X[i,j]); "
                        "a[i] = min[j](where(X[i,j] == m[i], i32(j), 2147483647))"));
  list.push_back(Memory("transpose 4096", kTranspose, kWide, kWide, "Y", kWide * kWide,
                        2 * kWide * kWide, "Y[i,j] = X[j,i]"));
  list.push_back(CumulativeSum("cumsum 16M", 1, kMany));
  list.push_back(CumulativeSum("cumsum 4096x1024", kWide, kRow));
}

}  // namespace quern
