#include "driver/tensor_memory.h"

#include <cstring>

#include "rewrite/concat.h"
#include "runtime/random_data.h"

namespace quern {

absl::StatusOr<TensorMemory> TensorMemory::Create(const ProgramInput& input, uint64_t seed) {
  TensorMemory memory;
  memory.tensors_ = input.program.tensors;
  for (size_t i = 0; i < memory.tensors_.size(); ++i) {
    const TensorInfo& t = memory.tensors_[i];
    AlignedMemory bytes = AllocateAligned(t.bytes());
    if (bytes == nullptr) {
      return absl::ResourceExhaustedError(
          Concat("no memory for tensor ", t.name, " (", t.bytes(), " bytes)"));
    }
    const auto array = input.arrays.find(t.name);
    if (array != input.arrays.end()) {
      if (t.bytes() > 0) std::memcpy(bytes.get(), array->second.data.data(), t.bytes());
    } else if (t.role == TensorRole::kInput || t.role == TensorRole::kInOut) {
      // Different tensors get different numbers, and keep them when another tensor is added.
      FillRandom(t.dtype.scalar, t.elements(), seed * 1000003 + i, bytes.get());
    } else {
      FillPoison(t.dtype.scalar, t.elements(), bytes.get());
    }
    memory.memory_.push_back(std::move(bytes));
  }
  return memory;
}

std::vector<void*> TensorMemory::Pointers() const {
  std::vector<void*> pointers;
  for (const AlignedMemory& m : memory_) pointers.push_back(m.get());
  return pointers;
}

std::vector<BufferView> TensorMemory::Views() const {
  std::vector<BufferView> views;
  for (size_t i = 0; i < memory_.size(); ++i) {
    views.push_back({tensors_[i].slot, memory_[i].get(), tensors_[i].bytes()});
  }
  return views;
}

absl::Status TensorMemory::WriteOutputs(const ProgramInput& input) const {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const TensorInfo& t = tensors_[i];
    const auto file = input.outputs.find(t.name);
    if (file == input.outputs.end()) continue;
    const absl::Status s =
        WriteNpy(file->second, t.dtype, t.shape,
                 {static_cast<const std::byte*>(memory_[i].get()), static_cast<size_t>(t.bytes())});
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace quern
