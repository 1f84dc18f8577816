#ifndef QUERN_RUNTIME_CPU_DEVICE_H_
#define QUERN_RUNTIME_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "rewrite/target.h"
#include "runtime/kernel_image.h"

namespace quern {

/// The machine code of a kernel's phase. `params` are the pointers of all its parameters.
using KernelFunction = void (*)(void* const* params, void* scratch, int64_t thread);

/// A kernel in memory, ready to run. Several threads may run it at the same time; each run has
/// scratch memory of its own.
class CpuKernel {
 public:
  virtual ~CpuKernel() = default;

  /// Runs it on the caller's buffers, which stand in the order of the image's parameters that are
  /// not temporary. The pointers must be aligned to the elements' size; 64 bytes are best.
  ///
  /// What the kernel packs once, from operands that are the same in each run, it packs in the first
  /// run, unless PackConstants has done so.
  virtual void Run(std::span<void* const> buffers) = 0;

  /// Packs constant operands, again if they were: after this, runs see their present contents. No
  /// run may be in progress.
  virtual void PackConstants(std::span<void* const> buffers) = 0;

  /// The code itself, for callers to whom each nanosecond counts: `f(buffers, nullptr, 0)` does
  /// what Run does. nullptr if the kernel needs more than its buffers: threads, scratch memory,
  /// several phases. Lives as long as the kernel.
  virtual KernelFunction raw_function() const = 0;

  virtual const KernelImage& image() const = 0;
};

/// The processor as a device: links object code into this process and runs it on oneTBB threads.
class CpuDevice {
 public:
  virtual ~CpuDevice() = default;

  /// `threads` limits the cores of the target; 0 means all that the process may use.
  static absl::StatusOr<std::unique_ptr<CpuDevice>> Create(int threads = 0);

  virtual const Target& target() const = 0;

  /// Links an image. Errors: code that cannot be linked, no memory for scratch space. The device
  /// must outlive the kernel.
  virtual absl::StatusOr<std::unique_ptr<CpuKernel>> Load(KernelImage image) = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_CPU_DEVICE_H_
