#ifndef QUERN_REWRITE_ENGINE_H_
#define QUERN_REWRITE_ENGINE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "rewrite/bounds.h"
#include "rewrite/graph.h"
#include "rewrite/rule_set.h"

namespace quern {

/// Told of every rewrite, in order. Costs nothing when there is none.
class RewriteObserver {
 public:
  virtual ~RewriteObserver() = default;
  virtual void OnRewrite(std::string_view rule, const UOp* before, const UOp* after) = 0;
};

struct RewriteOptions {
  enum class Order : uint8_t {
    kPostOrder,  ///< a rule sees a node whose sources are rewritten already
    kPreOrder,   ///< a rule sees the node as it was given; the sources of its result come after
  };
  Order order = Order::kPostOrder;
  /// An error is returned after so many rewrites. The default grows with the graph.
  int64_t limit = -1;
  /// No rule fires any more after so many rewrites; what is reached is returned (for bisecting).
  int64_t stop_after = -1;
  RewriteObserver* observer = nullptr;
  /// Handed to rules as RuleContext::user.
  const void* user = nullptr;
};

/// Applies `rules` to every node under `root` until none applies. Each node is looked at once:
/// shared subexpressions are rewritten once, whatever uses them. ResourceExhausted, naming the
/// rules that fired last, if there is no end to it.
absl::StatusOr<const UOp*> Rewrite(UOpGraph& g, const UOp* root, const RuleSet& rules,
                                   BoundsAnalysis& bounds, const RewriteOptions& options = {});

}  // namespace quern

#endif  // QUERN_REWRITE_ENGINE_H_
