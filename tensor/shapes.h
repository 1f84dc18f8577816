#ifndef QUERN_TENSOR_SHAPES_H_
#define QUERN_TENSOR_SHAPES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tensor/names.h"
#include "tensor/notation.h"
#include "tensor/syntax.h"
#include "tensor/typing.h"

namespace quern::notation {

/// What the names of a formula mean.
struct FormulaMeaning {
  FormulaNames names;                              ///< its tensors have types and shapes now
  absl::flat_hash_map<std::string, int64_t> size;  ///< of each index variable
  ExprTypes types;
};

/// Resolves names, sizes, shapes and types, and proves that every read not marked with `pad` stays
/// inside its tensor.
absl::StatusOr<FormulaMeaning> ResolveFormula(const Formula& formula,
                                              const NotationOptions& options);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_SHAPES_H_
