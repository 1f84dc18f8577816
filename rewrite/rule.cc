#include "rewrite/rule.h"

namespace quern {
namespace {

// How tightly an operation binds; a larger number binds tighter.
int Precedence(Op op) {
  switch (op) {
    case Op::kOr:
      return 1;
    case Op::kXor:
      return 2;
    case Op::kAnd:
      return 3;
    case Op::kEq:
    case Op::kNe:
      return 4;
    case Op::kLt:
    case Op::kLe:
      return 5;
    case Op::kShl:
    case Op::kShr:
      return 6;
    case Op::kAdd:
    case Op::kSub:
      return 7;
    case Op::kMul:
    case Op::kFloorDiv:
    case Op::kFloorMod:
      return 8;
    default:
      return 9;
  }
}

std::string_view Infix(Op op) {
  switch (op) {
    case Op::kOr:
      return " | ";
    case Op::kXor:
      return " ^ ";
    case Op::kAnd:
      return " & ";
    case Op::kEq:
      return " == ";
    case Op::kNe:
      return " != ";
    case Op::kLt:
      return " < ";
    case Op::kLe:
      return " <= ";
    case Op::kShl:
      return " << ";
    case Op::kShr:
      return " >> ";
    case Op::kAdd:
      return " + ";
    case Op::kSub:
      return " - ";
    case Op::kMul:
      return " * ";
    case Op::kFloorDiv:
      return " / ";
    case Op::kFloorMod:
      return " % ";
    default:
      return "";
  }
}

// Prints the subexpression at `position` and moves past it. `tight` is how tightly the operation
// around it binds.
std::string Print(const Expr& e, size_t& position, int tight) {
  constexpr std::string_view kValues = "xyzw";
  constexpr std::string_view kPredicates = "pqr";
  const Token t = e.tokens[position++];
  switch (t.kind) {
    case TokenKind::kCapture:
      return std::string(1, kValues[static_cast<size_t>(t.value)]);
    case TokenKind::kPredicate:
      return std::string(1, kPredicates[static_cast<size_t>(t.value)]);
    case TokenKind::kConstant:
      return "c" + std::to_string(t.value);
    case TokenKind::kNumber:
      return std::to_string(t.value);
    case TokenKind::kNegativeZero:
      return "-0.0";
    case TokenKind::kInfinity:
      return "inf";
    case TokenKind::kLowerBound:
      return std::string("vmin(") + kValues[static_cast<size_t>(t.value)] + ")";
    case TokenKind::kUpperBound:
      return std::string("vmax(") + kValues[static_cast<size_t>(t.value)] + ")";
    case TokenKind::kIsSigned:
      return "signed";
    case TokenKind::kHighest:
      return "highest";
    case TokenKind::kBits:
      return "bits";
    case TokenKind::kExactInverse:
      return "exact_inverse(c" + std::to_string(t.value) + ")";
    case TokenKind::kOp:
      break;
  }
  const Op op = static_cast<Op>(t.value);
  if (op == Op::kNeg || op == Op::kNot) {
    return (op == Op::kNeg ? "-" : "!") + Print(e, position, 9);
  }
  const std::string_view infix = Infix(op);
  if (infix.empty()) {
    std::string text = std::string(OpName(op)) + "(";
    const size_t count = static_cast<size_t>(GetOpInfo(op).max_sources);
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) text += ", ";
      text += Print(e, position, 0);
    }
    return text + ")";
  }
  const int own = Precedence(op);
  std::string left = Print(e, position, own);
  std::string right = Print(e, position, own + 1);
  std::string text = left + std::string(infix) + right;
  return own < tight ? "(" + text + ")" : text;
}

}  // namespace

std::string_view DomainName(Domain domain) {
  constexpr std::string_view kNames[kDomainCount] = {"index", "integer",       "integral", "bool",
                                                     "float", "float-reassoc", "any"};
  return kNames[static_cast<size_t>(domain)];
}

std::string ToString(const Expr& e) {
  if (e.empty()) return "";
  size_t position = 0;
  return Print(e, position, 0);
}

}  // namespace quern
