#ifndef QUERN_BENCH_KERNEL_LIST_H_
#define QUERN_BENCH_KERNEL_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/program.h"

namespace quern {

/// A program that people tune, in index notation.
struct BenchKernel {
  std::string name;
  std::string formula;
  std::string sizes;
  std::string dtypes;
  std::vector<std::string> shapes;
};

/// Products, convolutions, reductions, elementwise and normalising kernels.
const std::vector<BenchKernel>& BenchKernels();
absl::StatusOr<Program> MakeProgram(const BenchKernel& kernel);

}  // namespace quern

#endif  // QUERN_BENCH_KERNEL_LIST_H_
