#ifndef QUERN_REWRITE_GRAPH_H_
#define QUERN_REWRITE_GRAPH_H_

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "rewrite/uop.h"

namespace quern {

/// Owns nodes: a bump arena and an open-addressing intern table.
///
/// A graph may stand on a *frozen* base. Many overlays can share one base from different threads:
/// the base is only read, each overlay writes its own table. A node made in an overlay is found in
/// the base first, so equal content is one pointer through base and overlay. Ids are dense over
/// base and overlay together; ids of two sibling overlays are unrelated.
///
///     UOpGraph base;
///     const UOp* kernel = ...;
///     base.Freeze();
///     UOpGraph candidate(&base);   // one per task
///     const UOp* rewritten = Simplify(candidate, kernel);
///     UOpGraph next;
///     const UOp* kept = next.Import(rewritten);
class UOpGraph {
 public:
  UOpGraph();
  /// `base` must be frozen and must outlive this graph.
  explicit UOpGraph(const UOpGraph* base);
  UOpGraph(const UOpGraph&) = delete;
  UOpGraph& operator=(const UOpGraph&) = delete;
  ~UOpGraph();

  /// The node with this content, made if it is new. QUERN_CHECKs the number of sources. Sources
  /// must belong to this graph or to its base.
  const UOp* Make(Op op, DType dtype, std::span<const UOp* const> sources, Arg arg = {});
  const UOp* Make(Op op, DType dtype, std::initializer_list<const UOp*> sources, Arg arg = {}) {
    return Make(op, dtype, std::span<const UOp* const>(sources.begin(), sources.size()), arg);
  }

  /// Copies a node and all that it uses from any other graph into this one.
  const UOp* Import(const UOp* root);

  /// After this, Make of a new node is a broken invariant, and overlays may be built on the graph.
  void Freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }

  /// One more than the largest id, base included: the size that side arrays need.
  size_t size() const { return next_id_; }
  /// Bytes held by this graph without its base.
  size_t bytes() const { return bytes_; }

 private:
  const UOp* Find(const Hash128& hash, Op op, DType dtype, std::span<const UOp* const> sources,
                  Arg arg) const;
  void* Allocate(size_t bytes);
  void Grow();

  const UOpGraph* base_ = nullptr;
  bool frozen_ = false;
  uint32_t next_id_ = 0;
  std::vector<const UOp*> table_;  // power-of-two size, nullptr = empty
  size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* cursor_ = nullptr;
  std::byte* block_end_ = nullptr;
  size_t bytes_ = 0;
};

/// Every node that `root` uses, sources before users, `root` last.
std::vector<const UOp*> Toposort(const UOp* root);
/// The same for several roots.
std::vector<const UOp*> Toposort(std::span<const UOp* const> roots);

/// `root` with every occurrence of each `from[i]` replaced by `to[i]` (replacements are not
/// searched again). Nodes are rebuilt as they are, without simplification.
const UOp* Substitute(UOpGraph& graph, const UOp* root, std::span<const UOp* const> from,
                      std::span<const UOp* const> to);

/// The node `u` with other sources; `u` itself when they are the same.
const UOp* WithSources(UOpGraph& graph, const UOp* u, std::span<const UOp* const> sources);

}  // namespace quern

#endif  // QUERN_REWRITE_GRAPH_H_
