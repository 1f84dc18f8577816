#include "codegen/statement_tree.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace quern {
namespace {

bool Reads(const Item& reader, const Item* item) {
  absl::flat_hash_set<const Item*> seen;
  std::vector<const Item*> stack(reader.inputs.begin(), reader.inputs.end());
  while (!stack.empty()) {
    const Item* i = stack.back();
    stack.pop_back();
    if (i == item) return true;
    if (!seen.insert(i).second) continue;
    stack.insert(stack.end(), i->inputs.begin(), i->inputs.end());
  }
  return false;
}

}  // namespace

void StatementTree::Add(const Item& item, const std::vector<const UOp*>& path, const UOp* statement,
                        const std::vector<const UOp*>* closes) {
  Node* at = &root_;
  size_t depth = 0;
  for (const UOp* range : path) {
    Node* next = at->children.empty() ? nullptr : at->children.back().get();
    const bool joins = next != nullptr && next->range == range && !next->fills &&
                       (depth < shared_depth_ || next->owner == item.owner) &&
                       std::none_of(next->closed_items.begin(), next->closed_items.end(),
                                    [&](const Item* closed) { return Reads(item, closed); });
    if (!joins) {
      at->children.push_back(std::make_unique<Node>());
      next = at->children.back().get();
      next->range = range;
      next->owner = item.owner;
    }
    ++depth;
    at = next;
    if (closes != nullptr && std::find(closes->begin(), closes->end(), range) != closes->end()) {
      at->closed_items.push_back(&item);
      // Nothing else may live in the loops that fill a buffer: its readers run in loops of their
      // own over the same ranges, where results from here would be stale.
      at->fills = item.node->op == Op::kStage;
    }
  }
  at->children.push_back(std::make_unique<Node>());
  at->children.back()->statement = statement;
}

void StatementTree::BuildChildren(UOpGraph& graph, const Node& node,
                                  std::vector<const UOp*>& statements) {
  for (const std::unique_ptr<Node>& child : node.children) {
    if (child->statement != nullptr) {
      statements.push_back(child->statement);
      continue;
    }
    std::vector<const UOp*> sources = {child->range};
    BuildChildren(graph, *child, sources);  // As deep as the loops of a kernel: at most 64.
    statements.push_back(graph.Make(Op::kLoop, kVoidType, sources));
  }
}

const UOp* StatementTree::Build(UOpGraph& graph) const {
  std::vector<const UOp*> statements;
  BuildChildren(graph, root_, statements);
  return graph.Make(Op::kPhase, kVoidType, statements);
}

}  // namespace quern
