#include "rewrite/rule_order.h"

#include "absl/container/inlined_vector.h"

namespace quern {
namespace {

bool IsFloatDomain(Domain d) { return d == Domain::kFloat || d == Domain::kFloatReassoc; }

// Larger operations are rewritten into smaller ones. Operations of one rank may be rewritten into
// each other if their operands become smaller.
int Rank(Op op, Domain domain) {
  const bool is_float = IsFloatDomain(domain);
  const bool is_bool = domain == Domain::kBool;
  switch (op) {
    case Op::kWhere:
      return 70;
    case Op::kMulAdd:
      return 60;
    case Op::kSub:
      // For floats, adding a negative is a subtraction; for integers the other way round.
      return is_float ? 42 : 58;
    case Op::kMax:
    case Op::kMin:
      return is_bool ? 58 : 55;
    case Op::kDiv:
      return 56;
    case Op::kTruncDiv:
    case Op::kTruncMod:
      return 54;
    case Op::kAbs:
      return 53;
    case Op::kFloorDiv:
      return 52;
    case Op::kFloorMod:
      return 51;
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return 50;
    case Op::kNot:
      return 49;
    case Op::kShl:
      return 48;
    case Op::kLe:
      return is_bool ? 57 : 47;
    case Op::kNeg:
      return is_float ? 10 : 46;
    case Op::kMul:
      return is_bool ? 58 : 44;
    case Op::kAdd:
      return is_bool ? 58 : 42;
    case Op::kLt:
      return is_bool ? 57 : 34;
    case Op::kEq:
    case Op::kNe:
      return is_bool ? 57 : 33;
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kLog2:
      return 12;
    default:
      return 8;
  }
}

// A subexpression by the place where it begins.
struct Term {
  const Expr* e;
  size_t at;
  const Token& token() const { return e->tokens[at]; }
  size_t end() const { return EndOfExpr(*e, at); }
};
using Terms = absl::InlinedVector<Term, 3>;

Terms Operands(Term t) {
  Terms operands;
  for (size_t i = t.at + 1; i < t.end(); i = EndOfExpr(*t.e, i)) operands.push_back({t.e, i});
  return operands;
}

// An expression of constants only is one constant.
bool IsConstant(Term t) {
  for (size_t i = t.at; i < t.end(); ++i) {
    const TokenKind kind = t.e->tokens[i].kind;
    if (kind == TokenKind::kCapture || kind == TokenKind::kPredicate) return false;
  }
  return true;
}

bool Same(Term a, Term b) {
  const bool a_constant = IsConstant(a);
  if (a_constant || IsConstant(b)) return a_constant && IsConstant(b);
  if (!(a.token() == b.token())) return false;
  if (a.token().kind != TokenKind::kOp) return true;
  const Terms x = Operands(a);
  const Terms y = Operands(b);
  for (size_t i = 0; i < x.size(); ++i) {
    if (!Same(x[i], y[i])) return false;
  }
  return true;
}

bool Larger(Domain domain, Term a, Term b);

// a[i] against b[i], the first difference decides. A choice is compared by its condition first and
// a quotient of floats by its dividend, everything else from the last operand to the first.
bool LargerInOrder(Domain domain, Op op, const Terms& a, const Terms& b) {
  const bool forward = op == Op::kWhere || op == Op::kDiv;
  for (size_t k = 0; k < a.size(); ++k) {
    const size_t i = forward ? k : a.size() - 1 - k;
    if (!Same(a[i], b[i])) return Larger(domain, a[i], b[i]);
  }
  return false;
}

// The operands of a comparison may change sides: each of b that is none of a is smaller than one
// of a that is none of b.
bool LargerAsSet(Domain domain, const Terms& a, const Terms& b) {
  auto among = [](const Term& t, const Terms& all) {
    for (const Term& other : all) {
      if (Same(t, other)) return true;
    }
    return false;
  };
  bool any = false;
  for (const Term& x : a) any = any || !among(x, b);
  if (!any) return false;
  for (const Term& y : b) {
    if (among(y, a)) continue;
    bool dominated = false;
    for (const Term& x : a) dominated = dominated || (!among(x, b) && Larger(domain, x, y));
    if (!dominated) return false;
  }
  return true;
}

// Patterns are short (kMaxTokens), so this may recurse.
bool Larger(Domain domain, Term a, Term b) {
  if (IsConstant(a)) return false;
  if (IsConstant(b)) return true;
  if (a.token().kind != TokenKind::kOp) return false;
  const Terms operands = Operands(a);
  for (const Term& x : operands) {
    if (Same(x, b) || Larger(domain, x, b)) return true;
  }
  if (b.token().kind != TokenKind::kOp) return false;
  const Op a_op = static_cast<Op>(a.token().value);
  const Op b_op = static_cast<Op>(b.token().value);
  const int a_rank = Rank(a_op, domain);
  const int b_rank = Rank(b_op, domain);
  if (a_rank < b_rank) return false;
  const Terms others = Operands(b);
  for (const Term& y : others) {
    if (!Larger(domain, a, y)) return false;
  }
  if (a_rank > b_rank) return true;
  if (operands.size() != others.size()) return false;
  if (a_op == Op::kLt || a_op == Op::kLe) return LargerAsSet(domain, operands, others);
  if (LargerInOrder(domain, a_op, operands, others)) return true;
  // x - c is larger than x + c.
  return a_op == Op::kSub && b_op == Op::kAdd && Same(operands[0], others[0]) &&
         Same(operands[1], others[1]);
}

int CountOf(const Expr& e, TokenKind kind, int16_t value) {
  int count = 0;
  for (size_t i = 0; i < e.size; ++i) {
    if (e.tokens[i].kind == kind && e.tokens[i].value == value) ++count;
  }
  return count;
}

}  // namespace

bool IsSmaller(Domain domain, const Expr& after, const Expr& before) {
  bool fewer = false;
  for (TokenKind kind : {TokenKind::kCapture, TokenKind::kPredicate}) {
    for (int16_t i = 0; i < 4; ++i) {
      const int difference = CountOf(after, kind, i) - CountOf(before, kind, i);
      if (difference > 0) return false;
      fewer = fewer || difference < 0;
    }
  }
  return fewer || Larger(domain, {&before, 0}, {&after, 0});
}

}  // namespace quern
