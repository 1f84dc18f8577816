#ifndef QUERN_TENSOR_LOWER_H_
#define QUERN_TENSOR_LOWER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rewrite/graph.h"
#include "tensor/shapes.h"

namespace quern::notation {

/// How much a kernel may grow while statements are inlined into it.
struct LowerLimits {
  int64_t steps = 1 << 20;  ///< expressions visited, those of inlined statements each time
  int axes = 60;
};

/// The kernel of one statement, with the statements marked in `inlined` written into it instead of
/// being read from memory. Its output loops are the variables of the left side, axis 0 outermost;
/// reduce loops follow, each reduction with its own. Equal reductions are one node.
///
/// ResourceExhausted if a limit is passed.
absl::StatusOr<const UOp*> LowerStatement(UOpGraph& graph, const Formula& formula,
                                          const FormulaMeaning& meaning, int statement,
                                          const std::vector<bool>& inlined,
                                          const LowerLimits& limits = {});

}  // namespace quern::notation

#endif  // QUERN_TENSOR_LOWER_H_
