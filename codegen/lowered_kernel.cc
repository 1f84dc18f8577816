#include "codegen/lowered_kernel.h"

namespace quern {

int64_t LayOutScratch(const std::vector<const UOp*>& buffers, std::vector<int64_t>& offsets) {
  offsets.clear();
  int64_t total = 0;
  for (const UOp* buffer : buffers) {
    offsets.push_back(total);
    const int64_t bytes = buffer->buffer_size() * ByteSize(buffer->dtype.scalar);
    total += (bytes + 63) / 64 * 64;
  }
  return total;
}

}  // namespace quern
