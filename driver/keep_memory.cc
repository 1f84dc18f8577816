#include "driver/keep_memory.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace quern {

void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kKeptBytes = 256 << 20, kGrownBytes = 16 << 20;
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_TOP_PAD, kGrownBytes);
  mallopt(M_MMAP_THRESHOLD, kGrownBytes);
#endif
}

}  // namespace quern
