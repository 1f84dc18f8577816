#include "rewrite/fold.h"

#include <bit>
#include <cmath>
#include <limits>

#include "absl/container/inlined_vector.h"

namespace quern {
namespace {

using Wide = __int128;

double AsDouble(int64_t bits) { return std::bit_cast<double>(bits); }

int64_t FloatBits(ScalarType type, double value) {
  const double rounded = RoundFloat(type, value);
  return std::bit_cast<int64_t>(std::isnan(rounded) ? std::numeric_limits<double>::quiet_NaN()
                                                    : rounded);
}

// f16 and bf16 are computed in f32 and rounded once. f32 may be computed in f64: for one operation
// the second rounding changes nothing.
double FloatStep(ScalarType type, double exact) {
  return type == ScalarType::kF64 ? exact : static_cast<double>(static_cast<float>(exact));
}

std::optional<double> FloatResult(Op op, ScalarType type, std::span<const int64_t> args) {
  const double a = AsDouble(args[0]);
  const double b = args.size() > 1 ? AsDouble(args[1]) : 0;
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kMulAdd:
      return FloatStep(type, a * b) + AsDouble(args[2]);
    case Op::kMax:
      return std::isnan(a) || a > b ? a : b;
    case Op::kMin:
      return std::isnan(a) || a < b ? a : b;
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::fabs(a);
    case Op::kFloor:
      return std::floor(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kExp2:
      return std::exp2(a);
    case Op::kLog:
      return std::log(a);
    case Op::kLog2:
      return std::log2(a);
    case Op::kSin:
      return std::sin(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kErf:
      return std::erf(a);
    default:
      return std::nullopt;
  }
}

// The mathematical value of an integer, bool or Index constant.
Wide IntegerOf(ScalarType type, int64_t bits) {
  return type == ScalarType::kU64 ? Wide{static_cast<uint64_t>(bits)} : Wide{bits};
}

std::optional<int64_t> IntegerBits(ScalarType type, Wide value) {
  if (type == ScalarType::kIndex) {
    if (value < INT64_MIN || value > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (type == ScalarType::kBool) return value != 0 ? 1 : 0;
  return WrapInteger(type, static_cast<int64_t>(static_cast<unsigned __int128>(value)));
}

std::optional<int64_t> BoolResult(Op op, bool a, bool b) {
  switch (op) {
    case Op::kAdd:
    case Op::kOr:
    case Op::kMax:
      return a || b;
    case Op::kMul:
    case Op::kAnd:
    case Op::kMin:
      return a && b;
    case Op::kXor:
      return a != b;
    case Op::kNot:
      return !a;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> IntegerResult(Op op, ScalarType type, std::span<const int64_t> args) {
  const Wide a = IntegerOf(type, args[0]);
  const Wide b = args.size() > 1 ? IntegerOf(type, args[1]) : 0;
  auto done = [&](Wide value) { return IntegerBits(type, value); };
  const bool fixed = IsInteger(type);
  switch (op) {
    case Op::kAdd:
      return done(a + b);
    case Op::kSub:
      return done(a - b);
    case Op::kMul:
      return done(a * b);
    case Op::kMulAdd:
      return done(a * b + IntegerOf(type, args[2]));
    case Op::kNeg:
      return done(-a);
    case Op::kAbs:
      return done(a < 0 ? -a : a);
    case Op::kFloorDiv: {
      if (b == 0) return 0;
      const Wide q = a / b;
      return done(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
    }
    case Op::kFloorMod: {
      if (b == 0) return args[0];
      const Wide r = a % b;
      return done(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case Op::kTruncDiv:
      return b == 0 ? 0 : done(a / b);
    case Op::kTruncMod:
      return b == 0 ? args[0] : done(a % b);
    case Op::kMax:
      return a > b ? args[0] : args[1];
    case Op::kMin:
      return a < b ? args[0] : args[1];
    case Op::kAnd:
      return done(a & b);
    case Op::kOr:
      return done(a | b);
    case Op::kXor:
      return done(a ^ b);
    case Op::kNot:
      return done(~a);
    case Op::kShl:
      if (!fixed) return std::nullopt;
      return done(static_cast<Wide>(static_cast<unsigned __int128>(a)
                                    << static_cast<int>(b & (BitWidth(type) - 1))));
    case Op::kShr:
      if (!fixed) return std::nullopt;
      return done(a >> static_cast<int>(b & (BitWidth(type) - 1)));
    default:
      return std::nullopt;
  }
}

template <typename T>
std::optional<int64_t> Compared(Op op, T a, T b) {
  switch (op) {
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

std::optional<int64_t> CastResult(ScalarType to, ScalarType from, int64_t bits) {
  if (IsFloat(from)) {
    const double x = AsDouble(bits);
    // f64 reaches the 16-bit types by way of f32; RoundFloat does that.
    if (IsFloat(to)) return FloatBits(to, x);
    if (to == ScalarType::kBool) return x != 0 ? 1 : 0;
    if (std::isnan(x)) return 0;
    if (to == ScalarType::kIndex) {
      if (!(x > -0x1p63 && x < 0x1p63)) return std::nullopt;
      return static_cast<int64_t>(x);
    }
    if (to == ScalarType::kU64) {
      if (x <= 0) return 0;
      return x >= 0x1p64 ? int64_t{-1} : static_cast<int64_t>(static_cast<uint64_t>(x));
    }
    const int64_t low = MinInteger(to);
    const int64_t high = MaxInteger(to);
    if (x <= static_cast<double>(low)) return low;
    if (x >= static_cast<double>(high)) return high;
    return static_cast<int64_t>(x);
  }
  const Wide value = IntegerOf(from, bits);
  if (!IsFloat(to)) return IntegerBits(to, value);
  if (to == ScalarType::kF64) return FloatBits(to, static_cast<double>(value));
  // Once from the integer to f32, so that there is no double rounding by way of f64.
  return FloatBits(to, static_cast<double>(static_cast<float>(value)));
}

std::optional<int64_t> BitcastResult(ScalarType to, ScalarType from, int64_t bits) {
  uint64_t raw = static_cast<uint64_t>(bits);
  if (from == ScalarType::kF32) raw = std::bit_cast<uint32_t>(static_cast<float>(AsDouble(bits)));
  if (from == ScalarType::kF16) raw = FloatToHalfBits(static_cast<float>(AsDouble(bits)));
  if (from == ScalarType::kBF16) raw = FloatToBFloatBits(static_cast<float>(AsDouble(bits)));
  switch (to) {
    case ScalarType::kF64:
      return FloatBits(to, std::bit_cast<double>(raw));
    case ScalarType::kF32:
      return FloatBits(to, std::bit_cast<float>(static_cast<uint32_t>(raw)));
    case ScalarType::kF16:
      return FloatBits(to, HalfBitsToFloat(static_cast<uint16_t>(raw)));
    case ScalarType::kBF16:
      return FloatBits(to, BFloatBitsToFloat(static_cast<uint16_t>(raw)));
    default:
      if (!IsInteger(to)) return std::nullopt;
      return WrapInteger(to, static_cast<int64_t>(raw));
  }
}

}  // namespace

std::optional<int64_t> EvaluateConstant(Op op, ScalarType result, ScalarType source,
                                        std::span<const int64_t> args) {
  if (op == Op::kWhere) return args[0] != 0 ? args[1] : args[2];
  if (op == Op::kCast) return CastResult(result, source, args[0]);
  if (op == Op::kBitcast) return BitcastResult(result, source, args[0]);
  if (GetOpInfo(op).comparison) {
    if (IsFloat(source)) return Compared(op, AsDouble(args[0]), AsDouble(args[1]));
    return Compared(op, IntegerOf(source, args[0]), IntegerOf(source, args[1]));
  }
  if (IsFloat(result)) {
    std::optional<double> value = FloatResult(op, result, args);
    if (!value.has_value()) return std::nullopt;
    return FloatBits(result, FloatStep(result, *value));
  }
  if (result == ScalarType::kBool) {
    return BoolResult(op, args[0] != 0, args.size() > 1 && args[1] != 0);
  }
  if (IsInteger(result) || result == ScalarType::kIndex) return IntegerResult(op, result, args);
  return std::nullopt;
}

const UOp* FoldConstant(UOpGraph& g, const UOp* u) {
  if (u->child_mask != OpBit(Op::kConst)) return nullptr;
  if (u->op == Op::kBroadcast) return g.Make(Op::kConst, u->dtype, {}, u->src(0)->arg);
  if (!IsElementwise(u->op)) return nullptr;
  absl::InlinedVector<int64_t, 3> args;
  for (const UOp* s : u->src()) args.push_back(s->arg.a);
  std::optional<int64_t> bits =
      EvaluateConstant(u->op, u->dtype.scalar, u->src(u->source_count - 1)->dtype.scalar, args);
  if (!bits.has_value()) return nullptr;
  return g.Make(Op::kConst, u->dtype, {}, {*bits, 0});
}

}  // namespace quern
