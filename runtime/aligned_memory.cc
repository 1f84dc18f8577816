#include "runtime/aligned_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace quern {
namespace {

constexpr int64_t kVector = 64;
constexpr int64_t kHugePage = 2 << 20;

}  // namespace

void AlignedDeleter::operator()(void* memory) const { std::free(memory); }

AlignedMemory AllocateAligned(int64_t bytes) {
  const int64_t alignment = bytes >= kHugePage ? kHugePage : kVector;
  const int64_t size = (bytes + kVector + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(size));
  if (memory != nullptr && alignment == kHugePage) {
    madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);  // Only a wish; failure is fine.
  }
  return AlignedMemory(memory);
}

}  // namespace quern
