#ifndef QUERN_RUNTIME_ALIGNED_MEMORY_H_
#define QUERN_RUNTIME_ALIGNED_MEMORY_H_

#include <cstdint>
#include <memory>

namespace quern {

struct AlignedDeleter {
  void operator()(void* memory) const;
};

/// Memory of one buffer: 64-byte aligned, large ones on huge pages where the system has them, with
/// one vector of slack behind the end. Contents are not initialised.
using AlignedMemory = std::unique_ptr<void, AlignedDeleter>;

/// `bytes` may be 0. nullptr when the system has no memory left.
AlignedMemory AllocateAligned(int64_t bytes);

}  // namespace quern

#endif  // QUERN_RUNTIME_ALIGNED_MEMORY_H_
