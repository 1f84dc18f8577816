#ifndef QUERN_TENSOR_NOTATION_H_
#define QUERN_TENSOR_NOTATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/program.h"

namespace quern {

/// What a formula leaves open.
struct NotationOptions {
  std::map<std::string, int64_t> sizes;                ///< of index variables
  std::map<std::string, DType> dtypes;                 ///< of tensors; inputs default to f32
  std::map<std::string, std::vector<int64_t>> shapes;  ///< of inputs
  std::vector<std::string>
      outputs;  ///< intermediates to keep; unused statements always are outputs
  /// Inputs whose contents do not change between runs, such as weights.
  std::vector<std::string> constants;
  bool fuse = true;  ///< false: every statement becomes a kernel
  /// Whether chains may become one kernel that keeps blocks of rows of their intermediates in
  /// cache.
  bool groups = true;
};

/// Reads `i=1024,j=1024`, `A=bf16,B=i8` and `X=1,3,226,226` (one tensor per call) into the options.
absl::Status ParseSizes(std::string_view text, NotationOptions& options);
absl::Status ParseDTypes(std::string_view text, NotationOptions& options);
absl::Status ParseShape(std::string_view text, NotationOptions& options);

/// Turns index notation (docs/index_notation.md) into kernels:
///
///     ParseNotation("C[i,j] = sum[k](A[i,k]*B[k,j])", {.sizes = {{"i", 64}, {"j", 64}, {"k",
///     64}}})
///
/// Errors show the place in the formula.
absl::StatusOr<Program> ParseNotation(std::string_view formula, const NotationOptions& options);

}  // namespace quern

#endif  // QUERN_TENSOR_NOTATION_H_
