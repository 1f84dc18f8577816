#ifndef QUERN_DRIVER_PROGRAM_TIMER_H_
#define QUERN_DRIVER_PROGRAM_TIMER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "driver/tensor_memory.h"
#include "tensor/prepare.h"

namespace quern {

/// Runs a plan once on the memory of its program; tensors that are updated in place are taken from
/// `pristine` first.
absl::Status RunOnce(ExecutionPlan& plan, const Program& program, const TensorMemory& pristine,
                     TensorMemory& memory);

/// Times plans of one program against one another: in turns of random order, so that all meet the
/// same state of the machine. Seconds of single runs, by plan. Each plan gets about `seconds` in
/// all, at least two samples, but one of a plan whose run takes four times that; short runs are
/// repeated within one sample.
absl::StatusOr<std::vector<std::vector<double>>> TimePlans(const std::vector<ExecutionPlan*>& plans,
                                                           const Program& program,
                                                           const TensorMemory& pristine,
                                                           TensorMemory& memory, double seconds);

/// The value below which `share` of the values lie; 0.5 is the median.
double Quantile(std::vector<double> values, double share);

}  // namespace quern

#endif  // QUERN_DRIVER_PROGRAM_TIMER_H_
