#ifndef QUERN_TENSOR_NAMES_H_
#define QUERN_TENSOR_NAMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tensor/program.h"
#include "tensor/syntax.h"

namespace quern::notation {

/// One place where a tensor is read.
struct ReadSite {
  const Expr* read = nullptr;
  int statement = 0;
  int tensor = 0;
};

/// Which names are tensors, which are index variables, and where tensors are read.
struct FormulaNames {
  std::vector<TensorInfo> tensors;               ///< names, slots and roles only
  std::vector<int> rank;                         ///< of each tensor
  absl::flat_hash_map<std::string, int> tensor;  ///< name → place in `tensors`
  std::vector<int> written;                      ///< per statement: the tensor that it defines
  std::vector<int> definition;                   ///< per tensor: its statement, or −1 for an input
  std::vector<Name> variables;                   ///< each once, where it first stands
  std::vector<ReadSite> reads;
};

/// Resolves the names of a formula. A statement may read earlier statements, and its own tensor at
/// exactly the element that it writes (in place). `outputs` are intermediates that the caller
/// wants.
absl::StatusOr<FormulaNames> ResolveNames(const Formula& formula,
                                          const std::vector<std::string>& outputs);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_NAMES_H_
