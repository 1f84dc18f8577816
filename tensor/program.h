#ifndef QUERN_TENSOR_PROGRAM_H_
#define QUERN_TENSOR_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewrite/graph.h"

namespace quern {

enum class TensorRole : uint8_t {
  kInput,
  kIntermediate,  ///< written by one kernel, read by others, of no interest to the caller
  kOutput,
  kInOut,  ///< read and overwritten in place
};

/// A tensor in row-major order.
struct TensorInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t slot = 0;  ///< of its PARAM in every kernel; its place in Program::tensors
  TensorRole role = TensorRole::kInput;
  /// An input with the same contents in each run, or an intermediate that is computed of such
  /// inputs alone: its kernel runs once. Either may be packed ahead.
  bool constant = false;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }
  int64_t bytes() const { return elements() * ByteSize(dtype.scalar); }
};

struct KernelInfo {
  const UOp* sink = nullptr;
  std::string name;             ///< that of the tensor which it writes
  int64_t output = 0;           ///< slot written
  std::vector<int64_t> inputs;  ///< slots read, ascending
};

/// Kernels in the order in which they run, and the tensors that they share.
struct Program {
  std::shared_ptr<UOpGraph> graph;  ///< owns the kernels
  std::vector<TensorInfo> tensors;  ///< inputs in order of appearance, then one per kernel
  std::vector<KernelInfo> kernels;

  /// The tensor of this name, or nullptr.
  const TensorInfo* Find(const std::string& name) const {
    for (const TensorInfo& t : tensors) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }
};

}  // namespace quern

#endif  // QUERN_TENSOR_PROGRAM_H_
