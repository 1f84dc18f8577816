#ifndef QUERN_BENCH_SUITE_WORKLOAD_H_
#define QUERN_BENCH_SUITE_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/suite/convolution.h"
#include "tensor/program.h"

namespace quern {

/// What a row of the suite computes, which peers and the reference implement by hand.
enum class WorkloadKind {
  kGemm,           ///< C = A·B, m×k by k×n, `batch` times
  kConvolution,    ///< Y from X and W
  kAttention,      ///< O = softmax(Q·Kᵀ/√k)·V of `batch` heads, m queries, n keys, all vectors of k
  kMulAdd,         ///< Y = A·B + C, m elements
  kSum,            ///< s = Σ X, m elements
  kNorm,           ///< s = √ΣX², m·n elements
  kRowSum,         ///< s[i] = Σ_j X[i,j]; X has m rows of n, here and below
  kColumnSum,      ///< s[j] = Σ_i X[i,j]
  kSoftmax,        ///< of each row
  kLayerNorm,      ///< of each row, with g[j] and b[j]
  kRmsNorm,        ///< of each row, with g[j]
  kArgMax,         ///< a[i]: the first j at which row i is largest, as i32
  kTranspose,      ///< Y[i,j] = X[j,i]
  kCumulativeSum,  ///< of each row: Y[i,j] = X[i,0] + … + X[i,j]
};

/// What follows a product in the same formula. Most peers leave it out.
enum class Tail {
  kNone,
  kRelu,
  kBiasGelu,      ///< GELU of P[i,j] + b[j]
  kBiasResidual,  ///< P[i,j] + b[j] + R[i,j]
};

struct Workload {
  std::string name;
  WorkloadKind kind = WorkloadKind::kGemm;
  std::string dtype = "f32";  ///< "f32", "bf16" or "u8s8": what a product multiplies
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool transposed_a = false, transposed_b = false;  ///< stored as k×m, n×k
  Tail tail = Tail::kNone;
  Convolution convolution;
  /// Above 1: the channels of the convolution are (k,c) and (j,o) with k and j below this, and the
  /// weights are stored as [p,q,k,j,c,o].
  int64_t capsule = 1;
  std::string formula;
  std::string sizes;                ///< as for ParseSizes
  std::string dtypes;               ///< as for ParseDTypes
  std::vector<std::string> shapes;  ///< as for ParseShape
  std::string weights;              ///< an input that may be reordered ahead: constant for Quern
  /// Whether `weights` are reordered ahead by all contenders; else they are compared both ways.
  bool always_packed = false;
  std::string output = "C";  ///< name of the tensor that is checked
  int64_t output_elements = 1;
  double flops = 0;
  /// That must move between memory and processor: every element of every operand once.
  double bytes = 0;

  bool is_product() const { return kind == WorkloadKind::kGemm; }
  /// Multiplies and adds more than once per element, so that arithmetic may be what bounds it.
  bool is_dense() const {
    return is_product() || kind == WorkloadKind::kConvolution || kind == WorkloadKind::kAttention;
  }
};

/// The memory of the tensors, by name.
class Buffers {
 public:
  void Set(const std::string& name, void* data) { data_[name] = data; }
  template <typename T = float>
  T* Get(const std::string& name) const {
    return static_cast<T*>(data_.at(name));
  }

 private:
  std::map<std::string, void*> data_;
};

const std::vector<Workload>& SuiteWorkloads();
/// `packed`: the weights are constant.
absl::StatusOr<Program> MakeProgram(const Workload& workload, bool packed);

// The rows of the suite, by what they compute.
void AddProducts(std::vector<Workload>& list);
void AddConvolutions(std::vector<Workload>& list);
void AddAttention(std::vector<Workload>& list);
void AddMemoryBound(std::vector<Workload>& list);
/// The single operators of "Ansor: Generating High-Performance Tensor Programs for Deep Learning"
/// (OSDI 2020).
void AddAnsor(std::vector<Workload>& list);

// One row each, with its formula and everything that follows from the sizes.
Workload Gemm(std::string name, int64_t m, int64_t n, int64_t k);
Workload ConvolutionRow(std::string name, const Convolution& shape);
Workload SoftmaxRows(std::string name, int64_t m, int64_t n);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_WORKLOAD_H_
