#ifndef QUERN_DRIVER_TENSOR_MEMORY_H_
#define QUERN_DRIVER_TENSOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/program_input.h"
#include "rewrite/interpret.h"
#include "runtime/aligned_memory.h"

namespace quern {

/// Memory for all tensors of a program. Tensors without an array hold random numbers from a seed;
/// outputs hold poison, so that what a kernel leaves unwritten is seen.
class TensorMemory {
 public:
  static absl::StatusOr<TensorMemory> Create(const ProgramInput& input, uint64_t seed);

  /// By place in Program::tensors.
  void* data(int64_t place) const { return memory_[place].get(); }
  /// All of them, in that order.
  std::vector<void*> Pointers() const;
  /// For the interpreter, which finds them by slot.
  std::vector<BufferView> Views() const;

  /// Writes the outputs that were asked for to their files.
  absl::Status WriteOutputs(const ProgramInput& input) const;

 private:
  std::vector<AlignedMemory> memory_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace quern

#endif  // QUERN_DRIVER_TENSOR_MEMORY_H_
