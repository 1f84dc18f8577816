#ifndef QUERN_BENCH_SUITE_WORKLOAD_H_
#define QUERN_BENCH_SUITE_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/program.h"

namespace quern {

/// What a row of the suite computes, which peers and the reference implement by hand.
enum class WorkloadKind {
  kGemm,       ///< C = A·B, m×k by k×n, `batch` times
  kMulAdd,     ///< Y = A·B + C, m elements
  kSum,        ///< s = Σ X, m elements
  kRowSum,     ///< s[i] = Σ_j X[i,j]; X has m rows of n, here and below
  kColumnSum,  ///< s[j] = Σ_i X[i,j]
  kSoftmax,    ///< of each row
  kLayerNorm,  ///< of each row, with g[j] and b[j]
  kTranspose,  ///< Y[i,j] = X[j,i]
};

struct Workload {
  std::string name;
  WorkloadKind kind = WorkloadKind::kGemm;
  std::string dtype = "f32";  ///< "f32", "bf16" or "u8s8": what a product multiplies
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool transposed_a = false, transposed_b = false;  ///< stored as k×m, n×k
  bool bias_gelu = false;                           ///< peers compute the bare product
  std::string formula;
  std::string sizes;   ///< as for ParseSizes
  std::string dtypes;  ///< as for ParseDTypes

  double flops() const;
  /// That must move between memory and processor: every element of every operand once.
  double bytes() const;
  bool is_product() const { return kind == WorkloadKind::kGemm; }
  std::string output() const;  ///< name of the tensor that is checked
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
absl::StatusOr<Program> MakeProgram(const Workload& workload);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_WORKLOAD_H_
