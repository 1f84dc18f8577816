#ifndef QUERN_RUNTIME_KERNEL_IMAGE_H_
#define QUERN_RUNTIME_KERNEL_IMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite/dtype.h"

namespace quern {

/// A buffer that a kernel takes, in the order in which it takes them.
struct ImageParam {
  int64_t slot = 0;
  DType dtype;
  int64_t elements = 0;
  bool written = false;
  bool read = false;
  bool temporary = false;  ///< allocated by the runtime, not the caller
  bool kept = false;       ///< a temporary whose contents outlive the run

  int64_t bytes() const { return elements * ByteSize(dtype.scalar); }
  bool operator==(const ImageParam&) const = default;
};

/// A function of the object code: `void symbol(void* const* params, void* scratch, int64_t
/// thread)`.
struct ImagePhase {
  std::string symbol;
  int64_t threads = 1;
  int64_t scratch_bytes = 0;  ///< per thread
  bool once = false;          ///< packs constant operands; need not run again
  bool part_by_part = false;  ///< threads may go through all phases (runtime/part_by_part.h)
  bool operator==(const ImagePhase&) const = default;
};

/// Everything that is needed to run a kernel without compiling it: what a cache keeps.
struct KernelImage {
  std::string object;  ///< an object file
  std::vector<ImageParam> params;
  std::vector<ImagePhase> phases;
  bool operator==(const KernelImage&) const = default;
};

/// A compact binary form, the same on every machine, and its inverse. Damaged bytes are an error,
/// never a crash.
std::string SerializeImage(const KernelImage& image);
absl::StatusOr<KernelImage> ParseImage(std::string_view bytes);

}  // namespace quern

#endif  // QUERN_RUNTIME_KERNEL_IMAGE_H_
