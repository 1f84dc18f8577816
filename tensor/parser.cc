#include "tensor/parser.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "rewrite/concat.h"
#include "tensor/keywords.h"
#include "tensor/lexer.h"

namespace quern::notation {
namespace {

// Deeper trees are refused, so that code may recurse over expressions.
constexpr int kMaxDepth = 500;

// Recursive descent. Every Parse… function leaves the cursor behind what it has read.
class Parser {
 public:
  Parser(Formula& formula, std::vector<Token> tokens)
      : formula_(formula), tokens_(std::move(tokens)) {}

  absl::Status Run() {
    while (Peek().kind != TokenKind::kEnd) {
      if (Take(";")) continue;
      if (absl::Status s = ParseStatement(); !s.ok()) return s;
      if (Peek().kind != TokenKind::kEnd && !Is(";")) {
        return Error(Peek(), "an operator, `;` or the end of the formula is expected here");
      }
    }
    if (formula_.statements.empty()) {
      return SourceError(formula_.text, {0, 0}, "the formula is empty");
    }
    return absl::OkStatus();
  }

 private:
  const Token& Peek() const { return tokens_[at_]; }
  bool Is(std::string_view symbol) const {
    return Peek().kind == TokenKind::kSymbol && Peek().text == symbol;
  }
  bool Take(std::string_view symbol) {
    if (!Is(symbol)) return false;
    ++at_;
    return true;
  }
  absl::Status Error(const Token& token, std::string_view message) const {
    return SourceError(formula_.text, token.span, message);
  }
  absl::Status Expect(std::string_view symbol, std::string_view where) {
    if (Take(symbol)) return absl::OkStatus();
    return Error(Peek(), Concat("`", symbol, "` is expected ", where));
  }
  // The span from a first token to the last one read.
  SourceSpan SpanFrom(int begin) const { return {begin, tokens_[at_ - 1].span.end}; }

  absl::StatusOr<const Expr*> Add(Expr expr) {
    for (const Expr* a : expr.args) expr.depth = std::max(expr.depth, a->depth + 1);
    if (expr.depth > kMaxDepth) {
      return SourceError(formula_.text, expr.span,
                         Concat("an expression more than ", kMaxDepth,
                                " operations deep; split it into statements"));
    }
    formula_.nodes.push_back(std::make_unique<Expr>(std::move(expr)));
    return formula_.nodes.back().get();
  }

  absl::StatusOr<Name> ParseName(std::string_view what) {
    const Token& t = Peek();
    if (t.kind != TokenKind::kName) {
      return Error(t, Concat("the name of ", what, " is expected here"));
    }
    if (IsReserved(t.text)) {
      return Error(t, Concat("`", t.text, "` is reserved and cannot name ", what));
    }
    ++at_;
    return Name{std::string(t.text), t.span};
  }

  // name, name… ] — `[` has been read. Names must differ.
  absl::StatusOr<std::vector<Name>> ParseVariables(std::string_view of) {
    std::vector<Name> names;
    if (Take("]")) return names;
    do {
      absl::StatusOr<Name> name = ParseName("an index variable");
      if (!name.ok()) return name.status();
      for (const Name& n : names) {
        if (n.text == name->text) {
          return SourceError(formula_.text, name->span,
                             Concat(n.text, " stands twice in the indices of ", of));
        }
      }
      names.push_back(*std::move(name));
    } while (Take(","));
    if (absl::Status s = Expect("]", "after the index variables"); !s.ok()) return s;
    return names;
  }

  absl::Status ParseStatement() {
    Statement statement;
    absl::StatusOr<Name> name = ParseName("a tensor");
    if (!name.ok()) return name.status();
    statement.name = *std::move(name);
    if (absl::Status s = Expect("[", "after the name of a tensor (a scalar is `name[]`)");
        !s.ok()) {
      return s;
    }
    absl::StatusOr<std::vector<Name>> variables = ParseVariables(statement.name.text);
    if (!variables.ok()) return variables.status();
    statement.variables = *std::move(variables);
    if (absl::Status s = Expect("=", "after the left side of a statement"); !s.ok()) return s;
    absl::StatusOr<const Expr*> value = ParseExpr(0);
    if (!value.ok()) return value.status();
    statement.value = *value;
    formula_.statements.push_back(std::move(statement));
    return absl::OkStatus();
  }

  // Operators of `level` and tighter.
  absl::StatusOr<const Expr*> ParseExpr(int level) {
    if (level == kUnaryLevel) return ParseUnary();
    const int begin = Peek().span.begin;
    absl::StatusOr<const Expr*> left = ParseExpr(level + 1);
    for (int count = 0; left.ok(); ++count) {
      const BinaryRow* row = nullptr;
      for (const BinaryRow& r : BinaryOperators()) {
        if (r.level == level && Is(r.symbol)) row = &r;
      }
      if (row == nullptr) break;
      if (level == kComparisonLevel && count > 0) {
        return Error(Peek(), "comparisons do not chain; join them with `&`");
      }
      ++at_;
      absl::StatusOr<const Expr*> right = ParseExpr(level + 1);
      if (!right.ok()) return right;
      Expr e{.kind = ExprKind::kOp, .span = SpanFrom(begin), .op = row->op};
      e.args = {*left, *right};
      if (row->swapped) std::swap(e.args[0], e.args[1]);
      left = Add(std::move(e));
    }
    return left;
  }

  absl::StatusOr<const Expr*> ParseUnary() {
    const int begin = Peek().span.begin;
    if (++nesting_ > kMaxDepth) return Error(Peek(), "brackets nested too deep");
    absl::StatusOr<const Expr*> result = [&]() -> absl::StatusOr<const Expr*> {
      const bool negative = Is("-");
      if (!negative && !Is("!")) return ParsePrimary();
      ++at_;
      absl::StatusOr<const Expr*> x = ParseUnary();
      if (!x.ok()) return x;
      if (negative && ((*x)->kind == ExprKind::kInteger || (*x)->kind == ExprKind::kReal)) {
        Expr e = **x;
        e.span = SpanFrom(begin);
        e.integer = -e.integer;
        e.real = -e.real;
        return Add(std::move(e));
      }
      Expr e{.kind = ExprKind::kOp, .span = SpanFrom(begin), .op = negative ? Op::kNeg : Op::kNot};
      e.args = {*x};
      return Add(std::move(e));
    }();
    --nesting_;
    return result;
  }

  absl::StatusOr<const Expr*> ParsePrimary() {
    const Token& t = Peek();
    if (t.kind == TokenKind::kInteger || t.kind == TokenKind::kReal) return ParseNumber();
    if (t.kind == TokenKind::kName) return ParseNamed();
    if (!Take("(")) return Error(t, "a value is expected here");
    absl::StatusOr<const Expr*> inner = ParseExpr(0);
    if (!inner.ok()) return inner;
    if (absl::Status s = Expect(")", "to close the bracket"); !s.ok()) return s;
    return inner;
  }

  absl::StatusOr<const Expr*> ParseNumber() {
    const Token& t = Peek();
    Expr e{.kind = t.kind == TokenKind::kInteger ? ExprKind::kInteger : ExprKind::kReal,
           .span = t.span};
    const absl::string_view digits(t.text.data(), t.text.size());
    const bool ok = absl::SimpleAtod(digits, &e.real) &&
                    (e.kind == ExprKind::kReal || absl::SimpleAtoi(digits, &e.integer));
    if (!ok) return Error(t, "this number is too large");
    ++at_;
    return Add(std::move(e));
  }

  absl::StatusOr<const Expr*> ParseNamed() {
    const Token& t = Peek();
    const int begin = t.span.begin;
    const std::string_view name = t.text;
    if (name == "inf" || name == "nan") {
      ++at_;
      Expr e{.kind = ExprKind::kReal, .span = t.span};
      e.real = name == "inf" ? HUGE_VAL : NAN;
      return Add(std::move(e));
    }
    ++at_;
    if (Is("[")) return ParseBracketed(begin, t);
    if (Is("(")) return ParseCall(begin, t);
    if (IsReserved(name)) return Error(t, Concat("`", name, "` needs an argument"));
    Expr e{.kind = ExprKind::kVariable, .span = t.span};
    e.name = std::string(name);
    return Add(std::move(e));
  }

  // A reduction, sum[k](…), or a tensor read, A[i,k]; the cursor is at `[`.
  absl::StatusOr<const Expr*> ParseBracketed(int begin, const Token& name) {
    for (const ReductionRow& row : Reductions()) {
      if (row.name != name.text) continue;
      ++at_;
      Expr e{.kind = ExprKind::kReduce};
      e.op = row.op;
      absl::StatusOr<std::vector<Name>> variables = ParseVariables(name.text);
      if (!variables.ok()) return variables.status();
      if (variables->empty()) return Error(name, "a reduction names what it runs over");
      e.variables = *std::move(variables);
      if (absl::Status s = Expect("(", "after the variables of a reduction"); !s.ok()) return s;
      absl::StatusOr<const Expr*> body = ParseExpr(0);
      if (!body.ok()) return body;
      if (absl::Status s = Expect(")", "to close the reduction"); !s.ok()) return s;
      e.args = {*body};
      e.span = SpanFrom(begin);
      return Add(std::move(e));
    }
    if (IsReserved(name.text)) {
      return Error(name, Concat("`", name.text, "` is reserved and cannot name a tensor"));
    }
    ++at_;
    Expr e{.kind = ExprKind::kRead};
    e.name = std::string(name.text);
    if (!Take("]")) {
      if (absl::Status s = ParseArguments("]", "indices", e.args); !s.ok()) return s;
    }
    e.span = SpanFrom(begin);
    return Add(std::move(e));
  }

  absl::Status ParseArguments(std::string_view close, std::string_view what,
                              std::vector<const Expr*>& args) {
    do {
      absl::StatusOr<const Expr*> a = ParseExpr(0);
      if (!a.ok()) return a.status();
      args.push_back(*a);
    } while (Take(","));
    return Expect(close, Concat("after the ", what));
  }

  // A function, a cast or pad(…); the cursor is at `(`.
  absl::StatusOr<const Expr*> ParseCall(int begin, const Token& name) {
    const std::optional<DType> cast = CastType(name.text);
    const FunctionRow* function = nullptr;
    for (const FunctionRow& f : Functions()) {
      if (f.name == name.text) function = &f;
    }
    if (!cast && function == nullptr && name.text != "pad") {
      if (name.text == "sum" || name.text == "prod") {
        return Error(name, Concat("a reduction names what it runs over: `", name.text, "[k](…)`"));
      }
      return Error(name, Concat("there is no function `", name.text, "`"));
    }
    ++at_;
    std::vector<const Expr*> args;
    if (!Take(")")) {
      if (absl::Status s = ParseArguments(")", "arguments", args); !s.ok()) return s;
    }
    const int low = function != nullptr ? function->min_args : 1;
    const int high = function != nullptr ? function->max_args : 1;
    const int count = static_cast<int>(args.size());
    if (count < low || count > high) {
      return SourceError(formula_.text, SpanFrom(begin),
                         Concat("`", name.text, "` takes ", low, high > low ? " or more" : "",
                                " argument", low == 1 ? "" : "s", ", not ", count));
    }
    Expr e{.kind = ExprKind::kOp, .span = SpanFrom(begin)};
    if (cast) {
      e.kind = ExprKind::kCast;
      e.dtype = *cast;
    } else if (function == nullptr) {
      if (args[0]->kind != ExprKind::kRead || args[0]->padded) {
        return SourceError(formula_.text, args[0]->span,
                           "`pad` marks one read of a tensor: `pad(X[…])`");
      }
      e = *args[0];
      e.padded = true;
      return Add(std::move(e));
    } else {
      e.op = function->op;
    }
    if (count == 1 || e.op == Op::kWhere) {
      e.args = std::move(args);
      return Add(std::move(e));
    }
    // max(a, b, c) is max(max(a, b), c).
    const Expr* folded = args[0];
    for (int i = 1; i < count; ++i) {
      Expr step{.kind = ExprKind::kOp, .span = e.span, .op = e.op};
      step.args = {folded, args[i]};
      absl::StatusOr<const Expr*> made = Add(std::move(step));
      if (!made.ok()) return made;
      folded = *made;
    }
    return folded;
  }

  Formula& formula_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

}  // namespace

absl::StatusOr<Formula> ParseFormula(std::string_view text) {
  Formula formula;
  formula.text = std::string(text);
  absl::StatusOr<std::vector<Token>> tokens = Tokenize(formula.text);
  if (!tokens.ok()) return tokens.status();
  if (absl::Status s = Parser(formula, *std::move(tokens)).Run(); !s.ok()) return s;
  // Tokens pointed into formula.text, which may move with the result; the tree holds copies.
  return formula;
}

}  // namespace quern::notation
