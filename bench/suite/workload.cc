#include "bench/suite/workload.h"

#include "tensor/notation.h"

namespace quern {

const std::vector<Workload>& SuiteWorkloads() {
  static const std::vector<Workload> list = [] {
    std::vector<Workload> made;
    AddProducts(made);
    AddConvolutions(made);
    AddAttention(made);
    AddMemoryBound(made);
    AddAnsor(made);
    return made;
  }();
  return list;
}

absl::StatusOr<Program> MakeProgram(const Workload& workload, bool packed) {
  NotationOptions options;
  if (absl::Status s = ParseSizes(workload.sizes, options); !s.ok()) return s;
  if (!workload.dtypes.empty()) {
    if (absl::Status s = ParseDTypes(workload.dtypes, options); !s.ok()) return s;
  }
  for (const std::string& shape : workload.shapes) {
    if (absl::Status s = ParseShape(shape, options); !s.ok()) return s;
  }
  if (packed && !workload.weights.empty()) options.constants = {workload.weights};
  return ParseNotation(workload.formula, options);
}

}  // namespace quern
