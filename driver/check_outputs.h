#ifndef QUERN_DRIVER_CHECK_OUTPUTS_H_
#define QUERN_DRIVER_CHECK_OUTPUTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "driver/program_input.h"
#include "driver/tensor_memory.h"

namespace quern {

/// How far outputs are from what they should be.
struct OutputCheck {
  double max_abs_error = 0;
  double max_rel_error = 0;  ///< relative to the largest magnitude of the output
  bool ok = true;
  int64_t interpreted = 0;  ///< elements compared with the interpreter
  std::string worst;        ///< the element that is not ok
};

/// Compares every output of `got` with `want`, which another schedule has computed.
void CompareOutputs(const Program& program, const TensorMemory& want, const TensorMemory& got,
                    OutputCheck& check);

/// Compares the outputs of every kernel in `got` with the interpreter: all elements of small
/// kernels, a sample of large ones. `before` holds the tensors as they were before the program ran.
absl::Status CompareWithInterpreter(const Program& program, const TensorMemory& before,
                                    const TensorMemory& got, OutputCheck& check);

}  // namespace quern

#endif  // QUERN_DRIVER_CHECK_OUTPUTS_H_
