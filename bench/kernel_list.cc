#include "bench/kernel_list.h"

#include "tensor/notation.h"

namespace quern {

const std::vector<BenchKernel>& BenchKernels() {
  static const std::vector<BenchKernel> kernels = {
      {"gemm 64", "C[i,j] = sum[k](A[i,k]*B[k,j])", "i=64,j=64,k=64", "", {}},
      {"gemm 256", "C[i,j] = sum[k](A[i,k]*B[k,j])", "i=256,j=256,k=256", "", {}},
      {"gemm 1000", "C[i,j] = sum[k](A[i,k]*B[k,j])", "i=1000,j=1000,k=1000", "", {}},
      {"gemm 1023", "C[i,j] = sum[k](A[i,k]*B[k,j])", "i=1023,j=1023,k=1023", "", {}},
      {"gemm 1024", "C[i,j] = sum[k](A[i,k]*B[k,j])", "i=1024,j=1024,k=1024", "", {}},
      {"gemm 1024 B transposed", "C[i,j] = sum[k](A[i,k]*B[j,k])", "i=1024,j=1024,k=1024", "", {}},
      {"gemm 1024 bias relu",
       "C[i,j] = max(sum[k](A[i,k]*B[k,j]) + b[j], 0)",
       "i=1024,j=1024,k=1024",
       "",
       {}},
      {"gemm 1024 u8 i8",
       "C[i,j] = sum[k](i32(A[i,k])*i32(B[k,j]))",
       "i=1024,j=1024,k=1024",
       "A=u8,B=i8",
       {}},
      {"matvec 4096", "y[i] = sum[k](A[i,k]*x[k])", "i=4096,k=4096", "", {}},
      {"vecmat 4096", "y[j] = sum[k](x[k]*A[k,j])", "j=4096,k=4096", "", {}},
      {"conv 56 3x3 64",
       "Y[o,h,w] = sum[c,p,q](X[c,h+p,w+q]*W[o,c,p,q])",
       "o=64,h=56,w=56,c=64,p=3,q=3",
       "",
       {}},
      {"conv 14 3x3 256",
       "Y[o,h,w] = sum[c,p,q](X[c,h+p,w+q]*W[o,c,p,q])",
       "o=256,h=14,w=14,c=256,p=3,q=3",
       "",
       {}},
      {"conv 56 1x1 256 64", "Y[o,h,w] = sum[c](X[c,h,w]*W[o,c])", "o=64,h=56,w=56,c=256", "", {}},
      {"depthwise 112 3x3 32",
       "Y[c,h,w] = sum[p,q](X[c,h+p,w+q]*W[c,p,q])",
       "c=32,h=112,w=112,p=3,q=3",
       "",
       {}},
      {"a*b+c 16 M", "Y[i] = A[i]*B[i]+C[i]", "i=16777216", "", {}},
      {"row sum", "s[i] = sum[j](X[i,j])", "i=16384,j=4096", "", {}},
      {"column sum", "s[j] = sum[i](X[i,j])", "i=4096,j=1024", "", {}},
      {"sum 16 M", "s[] = sum[i](X[i])", "i=16777216", "", {}},
      {"softmax",
       "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
       "i=4096,j=1024",
       "",
       {}},
      {"layer norm",
       "m[i] = sum[j](X[i,j])/1024.0; v[i] = sum[j]((X[i,j]-m[i])*(X[i,j]-m[i]))/1024.0; "
       "Y[i,j] = (X[i,j]-m[i])/sqrt(v[i]+0.00001)*g[j]+b[j]",
       "i=4096,j=1024",
       "",
       {}},
      {"gelu", "Y[i] = 0.5*X[i]*(1.0+erf(X[i]*0.70710678))", "i=4194304", "", {}},
      {"transpose 4096", "Y[i,j] = X[j,i]", "i=4096,j=4096", "", {}},
  };
  return kernels;
}

absl::StatusOr<Program> MakeProgram(const BenchKernel& kernel) {
  NotationOptions options;
  if (absl::Status s = ParseSizes(kernel.sizes, options); !s.ok()) return s;
  if (!kernel.dtypes.empty()) {
    if (absl::Status s = ParseDTypes(kernel.dtypes, options); !s.ok()) return s;
  }
  for (const std::string& shape : kernel.shapes) {
    if (absl::Status s = ParseShape(shape, options); !s.ok()) return s;
  }
  return ParseNotation(kernel.formula, options);
}

}  // namespace quern
