// Matrix products, alone and with what often follows them, and attention, which is two of them.

#include <algorithm>

#include "bench/suite/workload.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

double Product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// After everything else is known.
Workload Counted(Workload w, double operand_bytes) {
  const double batch = static_cast<double>(w.batch);
  w.output_elements = w.m * w.n * w.batch;
  w.flops = 2 * batch * Product(w.m, w.n) * static_cast<double>(w.k);
  w.bytes =
      batch * (operand_bytes * (Product(w.m, w.k) + Product(w.k, w.n)) + 4 * Product(w.m, w.n));
  return w;
}

Workload Tailed(std::string name, Tail tail, std::string formula) {
  Workload w = Gemm(std::move(name), 1024, 1024, 1024);
  w.tail = tail;
  w.formula = std::move(formula);
  if (tail == Tail::kBiasResidual) w.bytes += 4 * Product(w.m, w.n);
  return w;
}

Workload BytesProduct(int64_t n) {
  Workload w = Gemm(Concat("gemm ", n, " u8 s8"), n, n, n);
  w.dtype = "u8s8";
  w.formula = "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))";
  w.dtypes = "A=u8,B=i8";
  return Counted(w, 1);
}

Workload Attention(int64_t heads, int64_t length) {
  constexpr int64_t kSize = 64;
  Workload w;
  w.name = Concat("attention ", heads, "x", length, "x", kSize);
  w.kind = WorkloadKind::kAttention;
  w.batch = heads;
  w.m = w.n = length;
  w.k = kSize;
  w.output = "O";
  // 0.125 is 1/sqrt(64).
  w.formula =
      "S[h,i,j] = sum[d](Q[h,i,d]*K[h,j,d])*0.125; "
      "M[h,i] = max[j](S[h,i,j]); "
      "P[h,i,j] = exp(S[h,i,j]-M[h,i]); "
      "O[h,i,d] = sum[j](P[h,i,j]*V[h,j,d])/sum[j](P[h,i,j])";
  w.sizes = Concat("h=", heads, ",i=", length, ",j=", length, ",d=", kSize);
  w.output_elements = heads * length * kSize;
  w.flops = 4 * Product(heads, length) * Product(length, kSize);
  w.bytes = 16 * static_cast<double>(w.output_elements);
  return w;
}

}  // namespace

Workload Gemm(std::string name, int64_t m, int64_t n, int64_t k) {
  Workload w;
  w.name = std::move(name);
  w.m = m;
  w.n = n;
  w.k = k;
  w.formula = "C[i,j] = sum[k](A[i,k]*B[k,j])";
  w.sizes = Concat("i=", m, ",j=", n, ",k=", k);
  // Where packing is a good part of the work.
  if (std::min({m, n, k}) >= 512) w.weights = "B";
  return Counted(std::move(w), 4);
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
  list.push_back(Counted(w, 4));

  w = Gemm("gemm 1024 A transposed", 1024, 1024, 1024);
  w.transposed_a = true;
  w.formula = "C[i,j] = sum[k](A[k,i]*B[k,j])";
  list.push_back(w);

  w = Gemm("gemm 1024 B transposed", 1024, 1024, 1024);
  w.transposed_b = true;
  w.formula = "C[i,j] = sum[k](A[i,k]*B[j,k])";
  list.push_back(w);

  list.push_back(Tailed("gemm 1024 relu", Tail::kRelu, "C[i,j] = max(sum[k](A[i,k]*B[k,j]), 0)"));
  list.push_back(Tailed("gemm 1024 bias gelu", Tail::kBiasGelu,
                        "P[i,j] = sum[k](A[i,k]*B[k,j]) + b[j]; "
                        "C[i,j] = 0.5*P[i,j]*(1.0+erf(P[i,j]*0.70710678))"));
  list.push_back(Tailed("gemm 1024 bias residual", Tail::kBiasResidual,
                        "C[i,j] = sum[k](A[i,k]*B[k,j]) + b[j] + R[i,j]"));

  for (int64_t n : {256, 1000, 1023, 1024, 2048}) list.push_back(BytesProduct(n));
  w = BytesProduct(1024);
  w.name += " B transposed";
  w.transposed_b = true;
  w.formula = "C[i,j] = sum[k](i32(A[i,k])*i32(B[j,k]))";
  list.push_back(w);

  w = Gemm("gemm 1024 bf16", 1024, 1024, 1024);
  w.dtype = "bf16";
  w.formula = "C[i,j] = sum[k](f32(A[i,k])*f32(B[k,j]))";
  w.dtypes = "A=bf16,B=bf16";
  list.push_back(Counted(w, 2));
}

void AddAttention(std::vector<Workload>& list) {
  list.push_back(Attention(8, 512));
  list.push_back(Attention(1, 4096));
}

}  // namespace quern
