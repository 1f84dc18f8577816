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

/// A chain of statements that become one kernel. All but the last write temporaries of it.
struct StatementGroup {
  std::vector<int> statements;  ///< in order
  /// Per statement: which of its variables run over the loops that all statements share, outermost
  /// first. At these places a temporary is written and read alike.
  std::vector<std::vector<int>> shared;
};

/// The group of these statements that shares as many loops of the last one as it can, perhaps none.
StatementGroup FindSharedVariables(const Formula& formula, const FormulaMeaning& meaning,
                                   const std::vector<int>& statements,
                                   const std::vector<bool>& inlined);

/// The kernel of a group: one store for each statement, in order. The shared loops are its
/// outermost axes; then come the others of each statement with those of its reductions.
absl::StatusOr<const UOp*> LowerGroup(UOpGraph& graph, const Formula& formula,
                                      const FormulaMeaning& meaning, const StatementGroup& group,
                                      const std::vector<bool>& inlined,
                                      const LowerLimits& limits = {});

}  // namespace quern::notation

#endif  // QUERN_TENSOR_LOWER_H_
