#ifndef QUERN_DRIVER_NPY_H_
#define QUERN_DRIVER_NPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite/dtype.h"

namespace quern {

/// An array in row-major order and the machine's byte order, whatever the file had.
struct NpyArray {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

enum class NpyOrder : uint8_t { kC, kFortran };

/// Reads a NumPy `.npy` file of version 1, 2 or 3: C or Fortran order, either byte order.
///
/// NumPy has no bfloat16. Arrays of it are two-byte voids (`<V2`), which is what libraries that add
/// the type write; `'bfloat16'` as a descr is taken, too. To look at one in Python, view it:
/// `numpy.load(f).view(ml_dtypes.bfloat16)`.
absl::StatusOr<NpyArray> ReadNpy(const std::string& path);
/// The same for bytes in memory; `name` is what errors call them.
absl::StatusOr<NpyArray> ParseNpy(std::span<const std::byte> bytes, std::string_view name);

/// Writes row-major data of the given shape; in Fortran order if asked.
absl::Status WriteNpy(const std::string& path, DType dtype, std::span<const int64_t> shape,
                      std::span<const std::byte> data, NpyOrder order = NpyOrder::kC);
std::vector<std::byte> FormatNpy(DType dtype, std::span<const int64_t> shape,
                                 std::span<const std::byte> data, NpyOrder order = NpyOrder::kC);

}  // namespace quern

#endif  // QUERN_DRIVER_NPY_H_
