#ifndef QUERN_TENSOR_INDEX_EXPRESSION_H_
#define QUERN_TENSOR_INDEX_EXPRESSION_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "rewrite/graph.h"
#include "tensor/syntax.h"

namespace quern::notation {

/// What the index variables in scope stand for: a RANGE, or any Index expression when a statement
/// is inlined.
using IndexScope = absl::flat_hash_map<std::string, const UOp*>;

/// Ok if `e` may stand between the brackets of a read: index variables and integers joined by + - *
/// (by an integer), // and % (by a positive integer).
absl::Status CheckIndexExpression(const Formula& formula, const Expr* e);

/// The UOp of a checked index expression, of type Index.
const UOp* LowerIndexExpression(UOpGraph& g, const Expr* e, const IndexScope& scope);

/// Inclusive bounds of an Index expression over all values of the ranges in it, none of which may
/// be empty.
struct IndexInterval {
  int64_t low = 0;
  int64_t high = 0;
};
IndexInterval IndexBounds(const UOp* index);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_INDEX_EXPRESSION_H_
