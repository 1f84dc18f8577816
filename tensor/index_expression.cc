#include "tensor/index_expression.h"

#include "rewrite/bounds.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/linear.h"

namespace quern::notation {
namespace {

bool IsConstant(const Expr* e) {
  if (e->kind == ExprKind::kInteger) return true;
  if (e->kind != ExprKind::kOp) return false;
  for (const Expr* a : e->args) {
    if (!IsConstant(a)) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckIndexExpression(const Formula& formula, const Expr* e) {
  const auto error = [&](const Expr* at, std::string_view message) {
    return SourceError(formula.text, at->span, message);
  };
  if (e->kind == ExprKind::kInteger || e->kind == ExprKind::kVariable) return absl::OkStatus();
  if (e->kind != ExprKind::kOp) {
    return error(e, "an index is made of index variables and integers");
  }
  for (const Expr* a : e->args) {
    if (absl::Status s = CheckIndexExpression(formula, a); !s.ok()) return s;
  }
  switch (e->op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kNeg:
      return absl::OkStatus();
    case Op::kMul:
      if (IsConstant(e->args[0]) || IsConstant(e->args[1])) return absl::OkStatus();
      return error(e, "an index is affine: one factor of a product must be an integer");
    case Op::kFloorDiv:
    case Op::kFloorMod:
      if (e->args[1]->kind == ExprKind::kInteger && e->args[1]->integer > 0) {
        return absl::OkStatus();
      }
      return error(e->args[1], "an index is divided by a positive integer only");
    default:
      return error(e, "an index may use + - * // % only");
  }
}

const UOp* LowerIndexExpression(UOpGraph& g, const Expr* e, const IndexScope& scope) {
  if (e->kind == ExprKind::kInteger) return IndexConst(g, e->integer);
  if (e->kind == ExprKind::kVariable) return scope.at(e->name);
  QUERN_CHECK(e->kind == ExprKind::kOp);
  const UOp* a = LowerIndexExpression(g, e->args[0], scope);
  if (e->op == Op::kNeg) return FromLinear(g, ToLinear(Mul(g, a, IndexConst(g, -1))));
  const UOp* b = LowerIndexExpression(g, e->args[1], scope);
  // The normal spelling, so that equal indices of inlined statements are one node.
  return FromLinear(g, ToLinear(Binary(g, e->op, a, b)));
}

IndexInterval IndexBounds(const UOp* index) {
  BoundsAnalysis analysis;
  const Bounds bounds = LinearBounds(ToLinear(index), analysis);
  return {bounds.min, bounds.max};
}

}  // namespace quern::notation
