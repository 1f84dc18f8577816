#ifndef QUERN_REWRITE_RULE_H_
#define QUERN_REWRITE_RULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewrite/op.h"

namespace quern {

/// Of what type the values x, y, z, w and the constants c0…c3 of a rule are.
enum class Domain : uint8_t {
  kIndex,         ///< mathematical integers
  kInteger,       ///< wrapping integers of any width and sign
  kIntegral,      ///< both of these
  kBool,          ///< every capture is a bool
  kFloat,         ///< IEEE floats, exactly
  kFloatReassoc,  ///< floats taken for real numbers; only with SimplifyOptions::float_reassoc
  kAny,           ///< any type of value
};
inline constexpr int kDomainCount = 7;
std::string_view DomainName(Domain domain);

enum class TokenKind : uint8_t {
  kOp,         ///< value is an Op; its operands follow
  kCapture,    ///< value 0…3: x, y, z, w; matches any node of the domain's type
  kPredicate,  ///< value 0…2: p, q, r; matches any bool
  kConstant,   ///< value 0…3: c0…c3; matches any constant of the domain's type
  kNumber,     ///< the constant `value`
  kNegativeZero,
  kInfinity,
  // What only guards may ask. The rule language has two readings: range analysis answers them,
  // the prover assumes them (tests/smt).
  kLowerBound,    ///< vmin of capture `value`: some number that it is never below
  kUpperBound,    ///< vmax of capture `value`
  kIsSigned,      ///< the integer type is signed
  kHighest,       ///< the largest value of the integer type
  kBits,          ///< the width of the integer type
  kExactInverse,  ///< 1 / c`value` is exact in the type
};

struct Token {
  TokenKind kind = TokenKind::kNumber;
  int16_t value = 0;
  constexpr bool operator==(const Token&) const = default;
};

inline constexpr size_t kMaxTokens = 32;

/// An expression over captures, in prefix order: the same type serves as pattern, as result and as
/// guard of a rule. Written with the operators below.
struct Expr {
  std::array<Token, kMaxTokens> tokens{};
  uint8_t size = 0;

  constexpr Expr() = default;
  constexpr Expr(int number)  // NOLINT(google-explicit-constructor)
      : Expr(Token{TokenKind::kNumber, static_cast<int16_t>(number)}) {}
  explicit constexpr Expr(Token t) : size(1) { tokens[0] = t; }
  constexpr bool operator==(const Expr& other) const = delete;  // == builds an expression.

  constexpr void Append(const Expr& e) {
    // Past the end this is no constant expression, so a long rule does not compile.
    for (size_t i = 0; i < e.size; ++i) tokens[size++] = e.tokens[i];
  }
  constexpr bool empty() const { return size == 0; }
};

constexpr Expr MakeExpr(Op op, const Expr& a) {
  Expr e(Token{TokenKind::kOp, static_cast<int16_t>(op)});
  e.Append(a);
  return e;
}
constexpr Expr MakeExpr(Op op, const Expr& a, const Expr& b) {
  Expr e = MakeExpr(op, a);
  e.Append(b);
  return e;
}
constexpr Expr MakeExpr(Op op, const Expr& a, const Expr& b, const Expr& c) {
  Expr e = MakeExpr(op, a, b);
  e.Append(c);
  return e;
}

/// The vocabulary in which tables are written: `using namespace rule_language`.
namespace rule_language {

inline constexpr Expr x{Token{TokenKind::kCapture, 0}};
inline constexpr Expr y{Token{TokenKind::kCapture, 1}};
inline constexpr Expr z{Token{TokenKind::kCapture, 2}};
inline constexpr Expr w{Token{TokenKind::kCapture, 3}};
inline constexpr Expr p{Token{TokenKind::kPredicate, 0}};
inline constexpr Expr q{Token{TokenKind::kPredicate, 1}};
inline constexpr Expr r{Token{TokenKind::kPredicate, 2}};
inline constexpr Expr c0{Token{TokenKind::kConstant, 0}};
inline constexpr Expr c1{Token{TokenKind::kConstant, 1}};
inline constexpr Expr c2{Token{TokenKind::kConstant, 2}};
inline constexpr Expr c3{Token{TokenKind::kConstant, 3}};
inline constexpr Expr negative_zero{Token{TokenKind::kNegativeZero, 0}};
inline constexpr Expr infinity{Token{TokenKind::kInfinity, 0}};

inline constexpr Expr always{};  ///< no guard

// Integer `/` and `%` round to minus infinity; fdiv is the division of floats.
constexpr Expr operator+(const Expr& a, const Expr& b) { return MakeExpr(Op::kAdd, a, b); }
constexpr Expr operator-(const Expr& a, const Expr& b) { return MakeExpr(Op::kSub, a, b); }
constexpr Expr operator*(const Expr& a, const Expr& b) { return MakeExpr(Op::kMul, a, b); }
constexpr Expr operator/(const Expr& a, const Expr& b) { return MakeExpr(Op::kFloorDiv, a, b); }
constexpr Expr operator%(const Expr& a, const Expr& b) { return MakeExpr(Op::kFloorMod, a, b); }
constexpr Expr operator-(const Expr& a) { return MakeExpr(Op::kNeg, a); }
constexpr Expr operator<(const Expr& a, const Expr& b) { return MakeExpr(Op::kLt, a, b); }
constexpr Expr operator<=(const Expr& a, const Expr& b) { return MakeExpr(Op::kLe, a, b); }
constexpr Expr Equal(const Expr& a, const Expr& b) { return MakeExpr(Op::kEq, a, b); }
constexpr Expr NotEqual(const Expr& a, const Expr& b) { return MakeExpr(Op::kNe, a, b); }
constexpr Expr operator&(const Expr& a, const Expr& b) { return MakeExpr(Op::kAnd, a, b); }
constexpr Expr operator|(const Expr& a, const Expr& b) { return MakeExpr(Op::kOr, a, b); }
constexpr Expr operator^(const Expr& a, const Expr& b) { return MakeExpr(Op::kXor, a, b); }
constexpr Expr operator&&(const Expr& a, const Expr& b) { return MakeExpr(Op::kAnd, a, b); }
constexpr Expr operator||(const Expr& a, const Expr& b) { return MakeExpr(Op::kOr, a, b); }
constexpr Expr operator<<(const Expr& a, const Expr& b) { return MakeExpr(Op::kShl, a, b); }
constexpr Expr operator>>(const Expr& a, const Expr& b) { return MakeExpr(Op::kShr, a, b); }
constexpr Expr operator!(const Expr& a) { return MakeExpr(Op::kNot, a); }
constexpr Expr operator~(const Expr& a) { return MakeExpr(Op::kNot, a); }
constexpr Expr fdiv(const Expr& a, const Expr& b) { return MakeExpr(Op::kDiv, a, b); }
constexpr Expr trunc_div(const Expr& a, const Expr& b) { return MakeExpr(Op::kTruncDiv, a, b); }
constexpr Expr trunc_mod(const Expr& a, const Expr& b) { return MakeExpr(Op::kTruncMod, a, b); }
constexpr Expr max(const Expr& a, const Expr& b) { return MakeExpr(Op::kMax, a, b); }
constexpr Expr min(const Expr& a, const Expr& b) { return MakeExpr(Op::kMin, a, b); }
constexpr Expr where(const Expr& a, const Expr& b, const Expr& c) {
  return MakeExpr(Op::kWhere, a, b, c);
}
constexpr Expr muladd(const Expr& a, const Expr& b, const Expr& c) {
  return MakeExpr(Op::kMulAdd, a, b, c);
}
constexpr Expr abs(const Expr& a) { return MakeExpr(Op::kAbs, a); }
constexpr Expr floor(const Expr& a) { return MakeExpr(Op::kFloor, a); }
constexpr Expr sqrt(const Expr& a) { return MakeExpr(Op::kSqrt, a); }
constexpr Expr exp(const Expr& a) { return MakeExpr(Op::kExp, a); }
constexpr Expr exp2(const Expr& a) { return MakeExpr(Op::kExp2, a); }
constexpr Expr log(const Expr& a) { return MakeExpr(Op::kLog, a); }
constexpr Expr log2(const Expr& a) { return MakeExpr(Op::kLog2, a); }

// For guards.
constexpr Expr vmin(const Expr& a) {
  return Expr(Token{TokenKind::kLowerBound, a.tokens[0].value});
}
constexpr Expr vmax(const Expr& a) {
  return Expr(Token{TokenKind::kUpperBound, a.tokens[0].value});
}
constexpr Expr nonneg(const Expr& a) { return 0 <= vmin(a); }
/// 0 ≤ a < bound.
constexpr Expr within(const Expr& a, const Expr& bound) { return nonneg(a) && vmax(a) < bound; }
constexpr Expr divides(const Expr& d, const Expr& n) { return Equal(n % d, 0); }
constexpr Expr power_of_two(const Expr& c) { return 0 < c && Equal(c & (c - 1), 0); }
constexpr Expr exact_inverse(const Expr& c) {
  return Expr(Token{TokenKind::kExactInverse, c.tokens[0].value});
}
inline constexpr Expr is_signed{Token{TokenKind::kIsSigned, 0}};
inline constexpr Expr highest{Token{TokenKind::kHighest, 0}};
inline constexpr Expr bits{Token{TokenKind::kBits, 0}};

}  // namespace rule_language

/// Why applying a rule again and again comes to an end.
enum class Descent : uint8_t {
  kOrder,  ///< the result is smaller in the order of rule_order.h; checked by a test
  kGuard,  ///< the result has the same shape, but the guard is false of it
};

/// One row of a table: where `before` stands and `when` holds, `after` may stand. Each row is true
/// by itself; there are no conditions anywhere else.
struct Rule {
  std::string_view name;
  Domain domain;
  Expr before;
  Expr after;
  Expr when = {};
  Descent descent = Descent::kOrder;
};

/// The end of the subexpression that begins at `position`.
constexpr size_t EndOfExpr(const Expr& e, size_t position) {
  size_t open = 1;
  while (open > 0) {
    const Token& t = e.tokens[position++];
    --open;
    if (t.kind != TokenKind::kOp) continue;
    switch (static_cast<Op>(t.value)) {
      case Op::kWhere:
      case Op::kMulAdd:
        open += 3;
        break;
      case Op::kNeg:
      case Op::kAbs:
      case Op::kNot:
      case Op::kFloor:
      case Op::kSqrt:
      case Op::kExp:
      case Op::kExp2:
      case Op::kLog:
      case Op::kLog2:
        open += 1;
        break;
      default:
        open += 2;
        break;
    }
  }
  return position;
}

constexpr bool IsCaptureKind(TokenKind k) {
  return k == TokenKind::kCapture || k == TokenKind::kPredicate || k == TokenKind::kConstant;
}

namespace rule_internal {

constexpr bool Binds(const Expr& e, TokenKind kind, int16_t value) {
  for (size_t i = 0; i < e.size; ++i) {
    if (e.tokens[i].kind == kind && e.tokens[i].value == value) return true;
  }
  return false;
}

constexpr bool IsBound(const Rule& rule, const Expr& e, bool is_guard) {
  for (size_t i = 0; i < e.size; ++i) {
    const Token t = e.tokens[i];
    if (IsCaptureKind(t.kind) && !Binds(rule.before, t.kind, t.value)) return false;
    const bool asks_bound = t.kind == TokenKind::kLowerBound || t.kind == TokenKind::kUpperBound;
    if (asks_bound && !Binds(rule.before, TokenKind::kCapture, t.value)) return false;
    if (t.kind >= TokenKind::kLowerBound && !is_guard) return false;
  }
  return true;
}

// Rules see simplified sources, so inside a pattern constants are on the right of commutative
// operations, and integers have no sub and no neg.
constexpr bool IsCanonical(const Rule& rule) {
  const Expr& e = rule.before;
  for (size_t i = 1; i < e.size; ++i) {
    if (e.tokens[i].kind != TokenKind::kOp) continue;
    const Op op = static_cast<Op>(e.tokens[i].value);
    const TokenKind left = e.tokens[i + 1].kind;
    if ((op == Op::kAdd || op == Op::kMul) &&
        (left == TokenKind::kConstant || left == TokenKind::kNumber)) {
      return false;
    }
    const bool integral = rule.domain == Domain::kIndex || rule.domain == Domain::kInteger ||
                          rule.domain == Domain::kIntegral;
    if (integral && (op == Op::kSub || op == Op::kNeg)) return false;
  }
  return true;
}

}  // namespace rule_internal

/// Whether a table can be used at all: names are unique, every pattern is an operation, results and
/// guards use nothing that the pattern does not bind, and patterns can occur.
template <size_t N>
constexpr bool WellFormed(const Rule (&table)[N]) {
  for (size_t i = 0; i < N; ++i) {
    const Rule& rule = table[i];
    if (rule.before.size == 0 || rule.before.tokens[0].kind != TokenKind::kOp) return false;
    if (EndOfExpr(rule.before, 0) != rule.before.size) return false;
    if (rule.after.size == 0 || EndOfExpr(rule.after, 0) != rule.after.size) return false;
    if (!rule_internal::IsBound(rule, rule.before, false)) return false;
    if (!rule_internal::IsBound(rule, rule.after, false)) return false;
    if (!rule_internal::IsBound(rule, rule.when, true)) return false;
    if (!rule_internal::IsCanonical(rule)) return false;
    for (size_t j = 0; j < i; ++j) {
      if (table[j].name == rule.name) return false;
    }
  }
  return true;
}

/// "(x / c0) * c0 + x % c0", as it stands in the table.
std::string ToString(const Expr& e);

}  // namespace quern

#endif  // QUERN_REWRITE_RULE_H_
