#ifndef QUERN_CODEGEN_LOWERED_KERNEL_H_
#define QUERN_CODEGEN_LOWERED_KERNEL_H_

#include <cstdint>
#include <vector>

#include "rewrite/uop.h"

namespace quern {

/// A buffer that the code gets by pointer, in the order of the pointers.
struct KernelParam {
  int64_t slot = 0;
  DType dtype;
  int64_t elements = 0;
  bool written = false;
  bool read = false;
  bool temporary = false;  ///< made by lowering; the runtime allocates it
  bool kept = false;       ///< a temporary whose contents outlive the run

  int64_t bytes() const { return elements * ByteSize(dtype.scalar); }
};

/// One phase: a function that runs `threads` times, each with its own scratch memory.
struct KernelPhase {
  const UOp* body = nullptr;          ///< kPhase without the loop over threads
  const UOp* thread_range = nullptr;  ///< nullptr: one thread
  int64_t threads = 1;
  int64_t scratch_bytes = 0;  ///< per thread, 64-byte aligned
  bool once = false;          ///< packs constant operands; need not run again
  bool part_by_part = false;  ///< threads may go through all phases one by one (kPartByPartFlag)
};

/// A kernel after all passes: statements over loops and buffers.
struct LoweredKernel {
  const UOp* sink = nullptr;
  std::vector<KernelParam> params;
  std::vector<KernelPhase> phases;
};

/// Slots at and above this are temporaries of lowering, not buffers of the caller.
inline constexpr int64_t kFirstTemporarySlot = 1 << 20;
/// Those from here on are kept between runs.
inline constexpr int64_t kFirstPackedSlot = 1 << 21;

/// Bytes from the start of scratch memory to each scratch buffer of a phase are laid out in slot
/// order, 64-byte aligned. Returns offsets by slot order of `buffers` and the total.
int64_t LayOutScratch(const std::vector<const UOp*>& buffers, std::vector<int64_t>& offsets);

}  // namespace quern

#endif  // QUERN_CODEGEN_LOWERED_KERNEL_H_
