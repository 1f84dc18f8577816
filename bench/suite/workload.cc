#include "bench/suite/workload.h"

#include "rewrite/concat.h"
#include "tensor/notation.h"

namespace quern {
namespace {

Workload Gemm(std::string name, int64_t m, int64_t n, int64_t k) {
  Workload w;
  w.name = std::move(name);
  w.m = m;
  w.n = n;
  w.k = k;
  w.formula = "C[i,j] = sum[k](A[i,k]*B[k,j])";
  w.sizes = Concat("i=", m, ",j=", n, ",k=", k);
  return w;
}

Workload Memory(std::string name, WorkloadKind kind, int64_t m, int64_t n, std::string formula) {
  Workload w;
  w.name = std::move(name);
  w.kind = kind;
  w.m = m;
  w.n = n;
  w.formula = std::move(formula);
  w.sizes = n == 1 ? Concat("i=", m) : Concat("i=", m, ",j=", n);
  return w;
}

void AddProducts(std::vector<Workload>& list) {
  for (int64_t n : {16, 32, 64, 128, 256, 512, 1000, 1023, 1024, 2048, 4096}) {
    list.push_back(Gemm(Concat("gemm ", n), n, n, n));
  }
  list.push_back(Gemm("gemm 128x4096x1024", 128, 4096, 1024));
  list.push_back(Gemm("gemm 1x4096x4096", 1, 4096, 4096));
  list.push_back(Gemm("gemm 4096x1x4096", 4096, 1, 4096));
  list.push_back(Gemm("gemm 4096x4096x16", 4096, 4096, 16));

  Workload w = Gemm("gemm 64 batch 64", 64, 64, 64);
  w.batch = 64;
  w.formula = "C[b,i,j] = sum[k](A[b,i,k]*B[b,k,j])";
  w.sizes = "b=64,i=64,j=64,k=64";
  list.push_back(w);

  w = Gemm("gemm 1024 A transposed", 1024, 1024, 1024);
  w.transposed_a = true;
  w.formula = "C[i,j] = sum[k](A[k,i]*B[k,j])";
  list.push_back(w);

  w = Gemm("gemm 1024 B transposed", 1024, 1024, 1024);
  w.transposed_b = true;
  w.formula = "C[i,j] = sum[k](A[i,k]*B[j,k])";
  list.push_back(w);

  w = Gemm("gemm 1024 bias gelu", 1024, 1024, 1024);
  w.bias_gelu = true;
  w.formula =
      "P[i,j] = sum[k](A[i,k]*B[k,j]) + b[j]; C[i,j] = 0.5*P[i,j]*(1.0+erf(P[i,j]*0.70710678))";
  list.push_back(w);

  w = Gemm("gemm 1024 u8 s8", 1024, 1024, 1024);
  w.dtype = "u8s8";
  w.formula = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";
  w.dtypes = "A=u8,B=i8";
  list.push_back(w);

  w = Gemm("gemm 1024 bf16", 1024, 1024, 1024);
  w.dtype = "bf16";
  w.formula = "C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))";
  w.dtypes = "A=bf16,B=bf16";
  list.push_back(w);
}

// Sizes well beyond last-level caches, so that the bandwidth of memory is what bounds them.
void AddMemoryBound(std::vector<Workload>& list) {
  using enum WorkloadKind;
  list.push_back(Memory("a*b+c 16 M", kMulAdd, 1 << 24, 1, "Y[i] = A[i]*B[i]+C[i]"));
  list.push_back(Memory("sum 16 M", kSum, 1 << 24, 1, "s[] = sum[i](X[i])"));
  list.push_back(Memory("row sum", kRowSum, 16384, 4096, "s[i] = sum[j](X[i,j])"));
  list.push_back(Memory("column sum", kColumnSum, 16384, 4096, "s[j] = sum[i](X[i,j])"));
  list.push_back(
      Memory("softmax rows", kSoftmax, 16384, 1024,
             "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])"));
  list.push_back(
      Memory("layer norm rows", kLayerNorm, 16384, 1024,
             "m[i] = sum[j](X[i,j])/1024.0; v[i] = sum[j]((X[i,j]-m[i])*(X[i,j]-m[i]))/1024.0; "
             "Y[i,j] = (X[i,j]-m[i])/sqrt(v[i]+0.00001)*g[j]+b[j]"));
  list.push_back(Memory("transpose 4096", kTranspose, 4096, 4096, "Y[i,j] = X[j,i]"));
}

}  // namespace

double Workload::flops() const {
  const double elements = static_cast<double>(m) * static_cast<double>(n);
  if (is_product()) return 2 * elements * static_cast<double>(k * batch);
  return kind == WorkloadKind::kTranspose ? 0 : elements;
}

double Workload::bytes() const {
  const double dm = static_cast<double>(m), dn = static_cast<double>(n);
  switch (kind) {
    case WorkloadKind::kGemm: {
      const double operand = dtype == "f32" ? 4 : dtype == "bf16" ? 2 : 1;
      const double dk = static_cast<double>(k);
      return static_cast<double>(batch) * (operand * (dm * dk + dk * dn) + 4 * dm * dn);
    }
    case WorkloadKind::kMulAdd:
      return 16 * dm;
    case WorkloadKind::kSum:
      return 4 * dm;
    case WorkloadKind::kRowSum:
      return 4 * (dm * dn + dm);
    case WorkloadKind::kColumnSum:
      return 4 * (dm * dn + dn);
    case WorkloadKind::kLayerNorm:
      return 4 * (2 * dm * dn + 2 * dn);
    case WorkloadKind::kSoftmax:
    case WorkloadKind::kTranspose:
      return 8 * dm * dn;
  }
  return 0;
}

std::string Workload::output() const {
  switch (kind) {
    case WorkloadKind::kGemm:
      return "C";
    case WorkloadKind::kSum:
    case WorkloadKind::kRowSum:
    case WorkloadKind::kColumnSum:
      return "s";
    default:
      return "Y";
  }
}

const std::vector<Workload>& SuiteWorkloads() {
  static const std::vector<Workload> list = [] {
    std::vector<Workload> made;
    AddProducts(made);
    AddMemoryBound(made);
    return made;
  }();
  return list;
}

absl::StatusOr<Program> MakeProgram(const Workload& workload) {
  NotationOptions options;
  if (absl::Status s = ParseSizes(workload.sizes, options); !s.ok()) return s;
  if (!workload.dtypes.empty()) {
    if (absl::Status s = ParseDTypes(workload.dtypes, options); !s.ok()) return s;
  }
  return ParseNotation(workload.formula, options);
}

}  // namespace quern
