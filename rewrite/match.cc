#include "rewrite/match.h"

#include <bit>
#include <cmath>

#include "rewrite/fold.h"
#include "rewrite/wide_integer.h"

namespace quern {
namespace {

bool Fits(Domain domain, ScalarType s) {
  switch (domain) {
    case Domain::kIndex:
      return s == ScalarType::kIndex;
    case Domain::kInteger:
      return IsInteger(s);
    case Domain::kIntegral:
      return s == ScalarType::kIndex || IsInteger(s);
    case Domain::kBool:
      return s == ScalarType::kBool;
    case Domain::kFloat:
    case Domain::kFloatReassoc:
      return IsFloat(s);
    case Domain::kAny:
      return s != ScalarType::kVoid;
  }
  return false;
}

bool IsDomainOfFloats(Domain d) { return d == Domain::kFloat || d == Domain::kFloatReassoc; }

int64_t NumberBits(const Token& t, ScalarType type) {
  if (IsFloat(type)) {
    double value = t.value;
    if (t.kind == TokenKind::kNegativeZero) value = -0.0;
    if (t.kind == TokenKind::kInfinity) value = INFINITY;
    return std::bit_cast<int64_t>(value);
  }
  if (type == ScalarType::kIndex) return t.value;
  return WrapInteger(type, t.value);
}

bool IsNumberKind(TokenKind k) {
  return k == TokenKind::kNumber || k == TokenKind::kNegativeZero || k == TokenKind::kInfinity;
}

// Patterns are short (kMaxTokens), so these may recurse.
class Matcher {
 public:
  Matcher(const Expr& pattern, Domain domain, Binding& binding)
      : pattern_(pattern), domain_(domain), binding_(binding) {}

  bool Node(const UOp* u) {
    const Token t = pattern_.tokens[position_++];
    switch (t.kind) {
      case TokenKind::kOp: {
        const Op op = static_cast<Op>(t.value);
        // −infinity is a number with a sign.
        if (op == Op::kNeg && pattern_.tokens[position_].kind == TokenKind::kInfinity) {
          ++position_;
          return u->IsConst() && IsFloat(u->dtype) && u->FloatValue() == -INFINITY;
        }
        if (u->op != op) return false;
        for (const UOp* s : u->src()) {
          if (!Node(s)) return false;
        }
        return true;
      }
      case TokenKind::kCapture:
        return Bind(binding_.values[static_cast<size_t>(t.value)], u) && HasValueType(u);
      case TokenKind::kPredicate:
        return IsBool(u->dtype) && Bind(binding_.predicates[static_cast<size_t>(t.value)], u);
      case TokenKind::kConstant:
        return u->IsConst() && Bind(binding_.constants[static_cast<size_t>(t.value)], u) &&
               HasValueType(u);
      default:
        return IsNumberKind(t.kind) && u->IsConst() && u->arg.a == NumberBits(t, u->dtype.scalar);
    }
  }

 private:
  bool Bind(const UOp*& slot, const UOp* u) {
    if (slot != nullptr) return slot == u;
    slot = u;
    return true;
  }
  bool HasValueType(const UOp* u) {
    if (binding_.dtype.scalar != ScalarType::kVoid) return u->dtype == binding_.dtype;
    if (!Fits(domain_, u->dtype.scalar)) return false;
    binding_.dtype = u->dtype;
    return true;
  }

  const Expr& pattern_;
  Domain domain_;
  Binding& binding_;
  size_t position_ = 0;
};

// Guards over integers: mathematical integers, no answer beyond 126 bits.
class IntegerGuard {
 public:
  IntegerGuard(const Expr& guard, const Binding& binding, BoundsAnalysis& bounds)
      : guard_(guard), binding_(binding), bounds_(bounds) {}

  std::optional<Wide> Value() {
    const Token t = guard_.tokens[position_++];
    const ScalarType type = binding_.dtype.scalar;
    switch (t.kind) {
      case TokenKind::kOp:
        return Operation(static_cast<Op>(t.value));
      case TokenKind::kConstant: {
        const int64_t bits = binding_.constants[static_cast<size_t>(t.value)]->arg.a;
        return type == ScalarType::kU64 ? Wide{static_cast<uint64_t>(bits)} : Wide{bits};
      }
      case TokenKind::kNumber:
        return t.value;
      case TokenKind::kLowerBound:
        return bounds_.Of(binding_.values[static_cast<size_t>(t.value)]).min;
      case TokenKind::kUpperBound: {
        const int64_t max = bounds_.Of(binding_.values[static_cast<size_t>(t.value)]).max;
        if (type == ScalarType::kU64 && max == INT64_MAX) return ~uint64_t{0};
        return max;
      }
      case TokenKind::kIsSigned:
        return IsSigned(type) ? 1 : 0;
      case TokenKind::kHighest:
        if (!IsInteger(type)) return std::nullopt;
        return type == ScalarType::kU64 ? Wide{~uint64_t{0}} : Wide{MaxInteger(type)};
      case TokenKind::kBits:
        return IsInteger(type) ? std::optional<Wide>(BitWidth(type)) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<Wide> Operation(Op op) {
    const std::optional<Wide> left = Value();
    if (op == Op::kNot) return left.has_value() ? std::optional<Wide>(*left == 0) : left;
    if (op == Op::kNeg) return left.has_value() ? std::optional<Wide>(-*left) : left;
    const std::optional<Wide> right = Value();
    if (!left.has_value() || !right.has_value()) return std::nullopt;
    const Wide a = *left;
    const Wide b = *right;
    Wide result = 0;
    switch (op) {
      case Op::kAdd:
        return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional<Wide>(result);
      case Op::kSub:
        return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional<Wide>(result);
      case Op::kMul:
        return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional<Wide>(result);
      case Op::kFloorDiv:
        if (b == 0) return 0;
        result = a / b;
        return a % b != 0 && (a < 0) != (b < 0) ? result - 1 : result;
      case Op::kFloorMod:
        if (b == 0) return a;
        result = a % b;
        return result != 0 && (result < 0) != (b < 0) ? result + b : result;
      case Op::kAnd:
        return a & b;
      case Op::kOr:
        return a | b;
      case Op::kShl:
        if (a < 0 || b < 0 || b > 62 || a > INT64_MAX) return std::nullopt;
        return a << static_cast<int>(b);
      case Op::kMax:
        return a > b ? a : b;
      case Op::kMin:
        return a < b ? a : b;
      case Op::kLt:
        return a < b;
      case Op::kLe:
        return a <= b;
      case Op::kEq:
        return a == b;
      case Op::kNe:
        return a != b;
      default:
        return std::nullopt;
    }
  }

  const Expr& guard_;
  const Binding& binding_;
  BoundsAnalysis& bounds_;
  size_t position_ = 0;
};

// 1/c is a power of two that the type holds exactly.
bool HasExactInverse(ScalarType type, double c) {
  if (c == 0 || !std::isfinite(c)) return false;
  int exponent;
  if (std::fabs(std::frexp(c, &exponent)) != 0.5) return false;
  const double inverse = 1 / c;
  return std::isfinite(inverse) && inverse != 0 && RoundFloat(type, inverse) == inverse;
}

// Float guards are a single fact about one constant.
bool FloatGuardHolds(const Rule& rule, const Binding& binding) {
  const Token t = rule.when.tokens[0];
  if (t.kind == TokenKind::kExactInverse) {
    const UOp* c = binding.constants[static_cast<size_t>(t.value)];
    return HasExactInverse(c->dtype.scalar, c->FloatValue());
  }
  // c ≠ number
  const Token left = rule.when.tokens[1];
  const Token right = rule.when.tokens[2];
  QUERN_CHECK(static_cast<Op>(t.value) == Op::kNe && left.kind == TokenKind::kConstant &&
              right.kind == TokenKind::kNumber);
  return binding.constants[static_cast<size_t>(left.value)]->FloatValue() != right.value;
}

class Builder {
 public:
  Builder(const Expr& result, const Binding& binding, UOpGraph& g, DType root)
      : result_(result), binding_(binding), graph_(g), lanes_(root.lanes) {}

  // `expected` is the type of a number that stands here.
  const UOp* Node(DType expected) {
    const Token t = result_.tokens[position_++];
    switch (t.kind) {
      case TokenKind::kOp:
        return Operation(static_cast<Op>(t.value), expected);
      case TokenKind::kCapture:
        return binding_.values[static_cast<size_t>(t.value)];
      case TokenKind::kPredicate:
        return binding_.predicates[static_cast<size_t>(t.value)];
      case TokenKind::kConstant:
        return binding_.constants[static_cast<size_t>(t.value)];
      default:
        return graph_.Make(Op::kConst, expected, {}, {NumberBits(t, expected.scalar), 0});
    }
  }

 private:
  const UOp* Operation(Op op, DType expected) {
    const DType boolean = kBoolType.WithLanes(lanes_);
    const bool comparison = GetOpInfo(op).comparison;
    const DType dtype = comparison ? boolean : expected;
    const DType operands = comparison ? binding_.dtype : expected;
    const size_t count = static_cast<size_t>(GetOpInfo(op).max_sources);
    std::array<const UOp*, 3> sources{};
    bool constant = true;
    for (size_t i = 0; i < count; ++i) {
      sources[i] = Node(op == Op::kWhere && i == 0 ? boolean : operands);
      if (sources[i] == nullptr) return nullptr;
      constant = constant && sources[i]->IsConst();
    }
    if (!constant) return graph_.Make(op, dtype, std::span(sources.data(), count));
    std::array<int64_t, 3> args{};
    for (size_t i = 0; i < count; ++i) args[i] = sources[i]->arg.a;
    const std::optional<int64_t> bits = EvaluateConstant(
        op, dtype.scalar, sources[count - 1]->dtype.scalar, std::span(args.data(), count));
    return bits.has_value() ? graph_.Make(Op::kConst, dtype, {}, {*bits, 0}) : nullptr;
  }

  const Expr& result_;
  const Binding& binding_;
  UOpGraph& graph_;
  int lanes_;
  size_t position_ = 0;
};

}  // namespace

bool Match(const CompiledRule& row, const UOp* u, Binding& binding) {
  return Matcher(row.before, row.rule->domain, binding).Node(u);
}

bool GuardHolds(const Rule& rule, const Binding& binding, BoundsAnalysis& bounds) {
  if (rule.when.empty()) return true;
  if (IsDomainOfFloats(rule.domain)) return FloatGuardHolds(rule, binding);
  const std::optional<Wide> value = IntegerGuard(rule.when, binding, bounds).Value();
  return value.has_value() && *value != 0;
}

const UOp* BuildResult(const Rule& rule, const UOp* u, const Binding& binding, UOpGraph& g) {
  return Builder(rule.after, binding, g, u->dtype).Node(u->dtype);
}

const UOp* ApplyRule(const CompiledRule& row, const UOp* u, RuleContext& context) {
  Binding binding;
  if (!Match(row, u, binding)) return nullptr;
  if (!GuardHolds(*row.rule, binding, context.bounds)) return nullptr;
  return BuildResult(*row.rule, u, binding, context.graph);
}

}  // namespace quern
