#ifndef QUERN_REWRITE_SIMPLIFY_H_
#define QUERN_REWRITE_SIMPLIFY_H_

#include <cstdint>
#include <span>
#include <utility>

#include "rewrite/bounds.h"
#include "rewrite/engine.h"
#include "rewrite/graph.h"

namespace quern {

struct SimplifyOptions {
  /// Also rules that change the rounding of floats, or assume that there are no infinities and
  /// NaNs.
  bool float_reassoc = false;
  RewriteObserver* observer = nullptr;
  /// Stops after so many rewrites; -1 for all. For bisecting a wrong kernel.
  int64_t rewrite_limit = -1;
  /// Nodes (usually ranges) that are known to lie in a narrower interval here.
  std::span<const std::pair<const UOp*, Bounds>> assumed = {};
};

/// An equal expression, statement or kernel in normal form. Works on everything from a single index
/// to a SINK. Simplifying twice changes nothing.
const UOp* Simplify(UOpGraph& g, const UOp* root);
const UOp* Simplify(UOpGraph& g, const UOp* root, const SimplifyOptions& options);

/// The rules that Simplify uses, for those who combine them with their own.
const RuleSet& SimplifyRules(bool float_reassoc = false);

}  // namespace quern

#endif  // QUERN_REWRITE_SIMPLIFY_H_
