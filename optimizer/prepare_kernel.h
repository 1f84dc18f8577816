#ifndef QUERN_OPTIMIZER_PREPARE_KERNEL_H_
#define QUERN_OPTIMIZER_PREPARE_KERNEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/beam.h"
#include "optimizer/configuration.h"
#include "optimizer/database.h"
#include "runtime/cpu_device.h"

namespace quern {

/// How a kernel came to be.
struct KernelReport {
  std::vector<Action> actions;
  std::string strategy;                ///< OptStrategy::Describe
  bool cached = false;                 ///< the actions come from the database
  bool code_cached = false;            ///< so does the object code
  double compile_ms = 0;               ///< lowering and compiling, 0 if the code was cached
  double lower_ms = 0;                 ///< of that, from schedule to linear form
  std::optional<SearchResult> search;  ///< if one was run now
  std::vector<std::string> notes;      ///< what the user should know, such as a search that failed
};

struct PreparedKernel {
  std::unique_ptr<CpuKernel> kernel;
  KernelReport report;
};

/// What preparing needs besides the kernel. `database` may be nullptr.
struct PrepareContext {
  CpuDevice& device;
  TuningDatabase* database = nullptr;
  const PrepareConfig& config;
  SearchHooks hooks;
};

/// Chooses a schedule by the configured strategy (or takes it from the database), compiles it (or
/// takes the code from the database) and loads it. A size-0 kernel has no code to run and is fine.
/// Errors: an invalid kernel, explicit actions that do not apply, code that cannot be made.
absl::StatusOr<PreparedKernel> PrepareKernel(const UOp* kernel, const PrepareContext& context);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_PREPARE_KERNEL_H_
