#include "rewrite/expression_piece.h"

#include <array>
#include <charconv>
#include <cmath>

#include "rewrite/concat.h"

namespace quern {
namespace {

// Precedences, loosest first, as in C.
constexpr int kConditional = 0;
constexpr int kUnary = 11;
constexpr int kPrimary = 12;

struct Infix {
  std::string_view sign;
  int precedence = -1;
};

// The sign of a binary operation; precedence -1 for those that are written as calls.
Infix InfixOf(const UOp* u) {
  const bool logical = IsBool(u->dtype);
  switch (u->op) {
    case Op::kAdd:
      return logical ? Infix{"||", 1} : Infix{"+", 9};
    case Op::kMul:
      return logical ? Infix{"&&", 2} : Infix{"*", 10};
    case Op::kSub:
      return {"-", 9};
    case Op::kDiv:
      return {"/", 10};
    case Op::kFloorDiv:
      return {"//", 10};
    case Op::kFloorMod:
      return {"%", 10};
    case Op::kOr:
      return logical ? Infix{"||", 1} : Infix{"|", 3};
    case Op::kXor:
      return {"^", 4};
    case Op::kAnd:
      return logical ? Infix{"&&", 2} : Infix{"&", 5};
    case Op::kEq:
      return {"==", 6};
    case Op::kNe:
      return {"!=", 6};
    case Op::kLt:
      return {"<", 7};
    case Op::kLe:
      return {"<=", 7};
    case Op::kShl:
      return {"<<", 8};
    case Op::kShr:
      return {">>", 8};
    default:
      return {};
  }
}

std::string InParentheses(const ExpressionPiece& piece, bool needed) {
  return needed ? Concat("(", piece.text, ")") : piece.text;
}

ExpressionPiece Call(std::string name, std::span<const ExpressionPiece> sources) {
  std::string_view separator = "(";
  for (const ExpressionPiece& s : sources) {
    Append(name, separator, s.text);
    separator = ", ";
  }
  return {Concat(name, ")"), kPrimary};
}

ExpressionPiece InfixPiece(const Infix& infix, std::span<const ExpressionPiece> s) {
  const std::string left = InParentheses(s[0], s[0].precedence < infix.precedence);
  if (infix.sign == "+" && s[1].text.starts_with('-') && s[1].precedence == kUnary) {
    return {Concat(left, " - ", std::string_view(s[1].text).substr(1)), infix.precedence};
  }
  // Neither + nor * may be regrouped: floats round at each step.
  const std::string right = InParentheses(s[1], s[1].precedence <= infix.precedence);
  return {Concat(left, " ", infix.sign, " ", right), infix.precedence};
}

// As "scan_add", "scan_max_before", "scan_mul_from": from this place on.
std::string ScanName(const UOp* u) {
  constexpr std::array<std::string_view, 4> kWhich = {"", "_before", "_from", "_after"};
  return Concat("scan_", OpName(u->reduce_op()), kWhich[static_cast<size_t>(u->arg.b)]);
}

std::string FloatText(const UOp* u) {
  const double value = u->FloatValue();
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> digits;
  char* end = digits.data() + digits.size();
  end = u->dtype.scalar == ScalarType::kF64
            ? std::to_chars(digits.data(), end, value).ptr
            : std::to_chars(digits.data(), end, static_cast<float>(value)).ptr;
  std::string text(digits.data(), end);
  // Also readable as a float: 2 is written 2.0.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string NameText(const UOp* u) {
  switch (u->op) {
    case Op::kParam:
      return Concat("p", u->slot());
    case Op::kScratch:
      return Concat("s", u->slot());
    case Op::kRegister:
      return Concat("r", u->slot());
    default:
      return Concat(IsReduceAxis(u->range_type()) ? "k" : "i", u->range_axis());
  }
}

ExpressionPiece LeafPiece(const UOp* u) {
  if (u->op == Op::kLanes) return {Concat("lanes", u->dtype.lanes), kPrimary};
  if (!u->IsConst()) return {NameText(u), kPrimary};
  std::string text = IsFloat(u->dtype)  ? FloatText(u)
                     : IsBool(u->dtype) ? u->IntValue() ? "true" : "false"
                     : u->dtype.scalar == ScalarType::kU64
                         ? Concat(static_cast<uint64_t>(u->IntValue()))
                         : Concat(u->IntValue());
  const int precedence = text.starts_with('-') ? kUnary : kPrimary;
  return {std::move(text), precedence};
}

ExpressionPiece AccessPiece(const UOp* buffer, const ExpressionPiece& offset,
                            const ExpressionPiece* gate) {
  if (gate == nullptr) return {Concat(NameText(buffer), "[", offset.text, "]"), kPrimary};
  return {Concat(NameText(buffer), "[", offset.text, " if ", gate->text, "]"), kPrimary};
}

ExpressionPiece OperationPiece(const UOp* u, std::span<const ExpressionPiece> s) {
  if (const Infix infix = InfixOf(u); infix.precedence >= 0) return InfixPiece(infix, s);
  switch (u->op) {
    case Op::kBroadcast:
      return s[0];
    case Op::kWhere:
      return {Concat(InParentheses(s[0], s[0].precedence <= kConditional), " ? ",
                     InParentheses(s[1], s[1].precedence <= kConditional), " : ", s[2].text),
              kConditional};
    case Op::kNeg:
    case Op::kNot: {
      const std::string_view sign = u->op == Op::kNeg ? "-" : IsBool(u->dtype) ? "!" : "~";
      return {Concat(sign, InParentheses(s[0], s[0].precedence <= kUnary)), kUnary};
    }
    case Op::kCast:
      return Call(std::string(ScalarTypeName(u->dtype.scalar)), s);
    case Op::kBitcast:
      return Call(Concat("bitcast_", ScalarTypeName(u->dtype.scalar)), s);
    case Op::kExtract:
      return {Concat(InParentheses(s[0], s[0].precedence < kPrimary), ".lane", u->arg.a), kPrimary};
    case Op::kHorizontal:
      return Call(Concat("lanes_", OpName(u->reduce_op())), s);
    case Op::kPrefix:
      return Call(Concat("lanes_", ScanName(u)), s);
    case Op::kInterleave:
      return Call(u->arg.a == 0 ? "interleave" : Concat("interleave", u->arg.a), s);
    case Op::kTile:
      return Call(Concat("tile", u->arg.a), s);
    case Op::kMatrix:
      return Call(Concat("matrix", u->arg.a), s);
    case Op::kMulAdd:
      return Call("fma", s);
    case Op::kReduce:
    case Op::kScan:
    case Op::kStage: {
      std::string name = u->op == Op::kStage  ? "stage"
                         : u->op == Op::kScan ? ScanName(u)
                                              : std::string(OpName(u->reduce_op()));
      std::string_view separator = "[";
      for (const UOp* r : u->src().subspan(1)) {
        Append(name, separator, NameText(r));
        separator = ", ";
      }
      return Call(u->source_count > 1 ? Concat(name, "]") : name, s.first(1));
    }
    default:
      return Call(std::string(OpName(u->op)), s);
  }
}

}  // namespace quern
