#ifndef QUERN_DRIVER_NPY_HEADER_H_
#define QUERN_DRIVER_NPY_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite/dtype.h"

namespace quern {

/// What the header of an .npy file says.
struct NpyHeader {
  DType dtype;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Parses the Python dictionary of a header, as in
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text);

/// The dictionary for a header in the byte order of this machine (little-endian).
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace quern

#endif  // QUERN_DRIVER_NPY_HEADER_H_
