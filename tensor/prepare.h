#ifndef QUERN_TENSOR_PREPARE_H_
#define QUERN_TENSOR_PREPARE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/prepare_kernel.h"
#include "runtime/aligned_memory.h"
#include "tensor/program.h"

namespace quern {

/// A program ready to run: every kernel scheduled, compiled and loaded.
///
///     absl::StatusOr<ExecutionPlan> plan = Prepare(program, *config);
///     plan->Run(buffers);   // one pointer per tensor that is no intermediate
///
/// Movable. Run may be called from several threads if no tensor is intermediate.
class ExecutionPlan {
 public:
  ExecutionPlan(ExecutionPlan&&) noexcept;
  ExecutionPlan& operator=(ExecutionPlan&&) noexcept;
  ~ExecutionPlan();

  /// The tensors for which Run wants pointers, in that order: inputs, outputs and in-out tensors as
  /// they stand in Program::tensors.
  const std::vector<TensorInfo>& arguments() const;

  /// Runs all kernels. `buffers[i]` belongs to arguments()[i], is aligned to its element and has
  /// its size. Errors: a wrong number of buffers, a null pointer.
  absl::Status Run(std::span<void* const> buffers);

  /// Machine code that does what Run does, without its checks, in some nanoseconds less:
  /// `f(buffers, nullptr, 0)`. nullptr unless the program is one kernel that needs nothing besides
  /// its arguments, in their order: no threads, no scratch memory. Lives as long as the plan.
  KernelFunction raw_function() const;

  /// Computes the constant intermediates (TensorInfo::constant), and packs what the kernels keep of
  /// constants in the layout that their inner loops read. Run does so the first time it is called;
  /// call this to have it done ahead, or again after the contents of a constant have changed.
  /// Arguments and errors as for Run; no Run may be in progress.
  absl::Status PackConstants(std::span<void* const> buffers);

  /// One per kernel, in order of execution.
  const std::vector<KernelReport>& reports() const;
  const Target& target() const;

 private:
  absl::Status CheckBuffers(std::span<void* const> buffers) const;

  struct State;
  explicit ExecutionPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  friend absl::StatusOr<ExecutionPlan> Prepare(const Program&, const PrepareConfig&,
                                               const SearchHooks&);
};

/// Schedules, compiles and loads a program. Errors: those of PrepareKernel, with the kernel's name.
absl::StatusOr<ExecutionPlan> Prepare(const Program& program, const PrepareConfig& config,
                                      const SearchHooks& hooks = {});

}  // namespace quern

#endif  // QUERN_TENSOR_PREPARE_H_
