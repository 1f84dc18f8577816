#ifndef QUERN_CODEGEN_STATEMENT_TREE_H_
#define QUERN_CODEGEN_STATEMENT_TREE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/item.h"

namespace quern {

/// Statements under loops, in the order in which they were added; neighbours share their loops
/// where that is allowed.
class StatementTree {
 public:
  /// Below `shared_depth` loops only statements of one owner share loops.
  explicit StatementTree(size_t shared_depth = SIZE_MAX) : shared_depth_(shared_depth) {}

  /// Adds a statement of `item` under the loops of `path`, outermost first. `closes` names those
  /// loops that must have ended before anybody may read the item's result: a statement of a later
  /// item that reads it gets loops of its own.
  void Add(const Item& item, const std::vector<const UOp*>& path, const UOp* statement,
           const std::vector<const UOp*>* closes);

  /// The tree as a phase.
  const UOp* Build(UOpGraph& graph) const;

 private:
  struct Node {
    const UOp* range = nullptr;      // of a loop
    const UOp* statement = nullptr;  // of a leaf
    std::vector<const Item*> closed_items;
    bool fills = false;  // a loop that fills the buffer of a STAGE
    int owner = 0;       // of a loop: of the items in it
    std::vector<std::unique_ptr<Node>> children;
  };

  static void BuildChildren(UOpGraph& graph, const Node& node, std::vector<const UOp*>& statements);

  size_t shared_depth_;
  Node root_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_STATEMENT_TREE_H_
