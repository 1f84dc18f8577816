#ifndef QUERN_CODEGEN_STATEMENT_PLACES_H_
#define QUERN_CODEGEN_STATEMENT_PLACES_H_

#include <functional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rewrite/graph.h"

namespace quern {

/// Loops and stores of a phase, each at its place: equal statements at two places are one node of
/// the graph, so what changes one of them only works on these.
struct PlacedStatement {
  const UOp* range = nullptr;  ///< of a loop
  const UOp* store = nullptr;  ///< of a leaf
  std::vector<PlacedStatement> inner;
};

PlacedStatement ReadStatements(const UOp* phase);
/// The statements as nodes again; `phase` is what they were read from.
const UOp* WriteStatements(UOpGraph& graph, const PlacedStatement& root, const UOp* phase);

/// A store, the loops around it below some statement, and the register axes in it, lanes last.
struct StorePlace {
  PlacedStatement* parent = nullptr;
  size_t at = 0;
  const UOp* store = nullptr;
  std::vector<const UOp*> loops;
  std::vector<const UOp*> registers;
};

/// The places of the stores in `statement` that are wanted, in order. They hold until something is
/// added to the statements.
std::vector<StorePlace> FindStores(PlacedStatement& statement,
                                   const std::function<bool(const UOp*)>& wanted);

/// Adds the buffers that the stores in `statement` write.
void AddWritten(const PlacedStatement& statement, absl::flat_hash_set<const UOp*>& buffers);

/// Moves the axis of lanes, of which a statement has one at most, to the end.
void MoveLanesLast(std::vector<const UOp*>& ranges);

}  // namespace quern

#endif  // QUERN_CODEGEN_STATEMENT_PLACES_H_
