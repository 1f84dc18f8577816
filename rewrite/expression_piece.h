#ifndef QUERN_REWRITE_EXPRESSION_PIECE_H_
#define QUERN_REWRITE_EXPRESSION_PIECE_H_

#include <span>
#include <string>

#include "rewrite/uop.h"

namespace quern {

/// Text of a value, and how tightly its outermost operator binds (larger is tighter).
struct ExpressionPiece {
  std::string text;
  int precedence = 0;
};

/// The name of a buffer (p0, s0, r0) or a range (i0, and k0 for axes of reductions).
std::string NameText(const UOp* u);

/// A constant, a range, `lanes` or a buffer.
ExpressionPiece LeafPiece(const UOp* u);

/// `buffer[offset]`, or `buffer[offset if gate]`.
ExpressionPiece AccessPiece(const UOp* buffer, const ExpressionPiece& offset,
                            const ExpressionPiece* gate);

/// An operation on values, with as few parentheses as its meaning allows. A broadcast is its
/// source. The sources are the values alone, without the ranges of a REDUCE or STAGE.
ExpressionPiece OperationPiece(const UOp* u, std::span<const ExpressionPiece> sources);

}  // namespace quern

#endif  // QUERN_REWRITE_EXPRESSION_PIECE_H_
