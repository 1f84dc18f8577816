#include "rewrite/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>

#include "rewrite/check.h"

namespace quern {
namespace {

Scalar OfInt(int64_t i) { return {.i = i}; }
Scalar OfFloat(double f) { return {.f = f}; }

double FloatMulAdd(ScalarType type, double a, double b, double c) {
  if (type == ScalarType::kF64) return std::fma(a, b, c);
  return std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
}

// Before rounding. Products, quotients, sums and roots of f32 values may be taken in double and
// rounded afterwards: double has more than twice the digits, so rounding twice is rounding once.
double FloatArithmetic(Op op, ScalarType type, const Scalar* s) {
  const double x = s[0].f;
  switch (op) {
    case Op::kAdd:
      return x + s[1].f;
    case Op::kSub:
      return x - s[1].f;
    case Op::kMul:
      return x * s[1].f;
    case Op::kDiv:
      return x / s[1].f;
    case Op::kMax:
      return std::isnan(x) || x > s[1].f ? x : s[1].f;
    case Op::kMin:
      return std::isnan(x) || x < s[1].f ? x : s[1].f;
    case Op::kMulAdd:
      return FloatMulAdd(type, x, s[1].f, s[2].f);
    case Op::kNeg:
      return -x;
    case Op::kAbs:
      return std::fabs(x);
    case Op::kFloor:
      return std::floor(x);
    case Op::kSqrt:
      return std::sqrt(x);
    case Op::kExp:
      return std::exp(x);
    case Op::kExp2:
      return std::exp2(x);
    case Op::kLog:
      return std::log(x);
    case Op::kLog2:
      return std::log2(x);
    case Op::kSin:
      return std::sin(x);
    case Op::kTanh:
      return std::tanh(x);
    case Op::kErf:
      return std::erf(x);
    default:
      QUERN_CHECK_MSG(false, "no float operation");
  }
}

// Also right for bool, where false < true.
template <typename T>
bool CompareAs(Op op, T x, T y) {
  switch (op) {
    case Op::kLt:
      return x < y;
    case Op::kLe:
      return x <= y;
    case Op::kEq:
      return x == y;
    default:
      return x != y;
  }
}

bool Compare(Op op, ScalarType type, const Scalar* s) {
  if (IsFloat(type)) return CompareAs(op, s[0].f, s[1].f);
  if (IsUnsigned(type)) {
    return CompareAs(op, static_cast<uint64_t>(s[0].i), static_cast<uint64_t>(s[1].i));
  }
  return CompareAs(op, s[0].i, s[1].i);
}

int64_t Quotient(Op op, ScalarType type, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (IsUnsigned(type)) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) / static_cast<uint64_t>(y));
  }
  // Also keeps the smallest 64-bit value divided by -1 from trapping.
  if (y == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
  const int64_t q = x / y;
  return op == Op::kFloorDiv && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

int64_t Remainder(Op op, ScalarType type, int64_t x, int64_t y) {
  if (y == 0) return x;
  if (IsUnsigned(type)) {
    return static_cast<int64_t>(static_cast<uint64_t>(x) % static_cast<uint64_t>(y));
  }
  if (y == -1) return 0;
  const int64_t r = x % y;
  return op == Op::kFloorMod && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

bool BoolArithmetic(Op op, const Scalar* s) {
  const bool x = s[0].i != 0;
  switch (op) {
    case Op::kAdd:
    case Op::kMax:
    case Op::kOr:
      return x || s[1].i != 0;
    case Op::kMul:
    case Op::kMin:
    case Op::kAnd:
      return x && s[1].i != 0;
    case Op::kXor:
      return x != (s[1].i != 0);
    case Op::kNot:
      return !x;
    default:
      QUERN_CHECK_MSG(false, "no bool operation");
  }
}

// In 64 bits; the caller wraps to the type. Sums and products of wrapped operands are right modulo
// every smaller power of two.
int64_t IntegerArithmetic(Op op, ScalarType type, const Scalar* s) {
  const int64_t x = s[0].i;
  const auto ux = static_cast<uint64_t>(x);
  const int64_t y = GetOpInfo(op).min_sources > 1 ? s[1].i : 0;
  const auto uy = static_cast<uint64_t>(y);
  const bool less = IsUnsigned(type) ? ux < uy : x < y;
  const int shift = static_cast<int>(uy & static_cast<uint64_t>(BitWidth(type) - 1));
  switch (op) {
    case Op::kAdd:
      return static_cast<int64_t>(ux + uy);
    case Op::kSub:
      return static_cast<int64_t>(ux - uy);
    case Op::kMul:
      return static_cast<int64_t>(ux * uy);
    case Op::kMulAdd:
      return static_cast<int64_t>(ux * uy + static_cast<uint64_t>(s[2].i));
    case Op::kFloorDiv:
    case Op::kTruncDiv:
      return Quotient(op, type, x, y);
    case Op::kFloorMod:
    case Op::kTruncMod:
      return Remainder(op, type, x, y);
    case Op::kMax:
      return less ? y : x;
    case Op::kMin:
      return less ? x : y;
    case Op::kAnd:
      return x & y;
    case Op::kOr:
      return x | y;
    case Op::kXor:
      return x ^ y;
    case Op::kShl:
      return static_cast<int64_t>(ux << shift);
    case Op::kShr:
      return IsUnsigned(type) ? static_cast<int64_t>(ux >> shift) : x >> shift;
    case Op::kNeg:
      return static_cast<int64_t>(0 - ux);
    case Op::kAbs:
      return IsUnsigned(type) || x >= 0 ? x : static_cast<int64_t>(0 - ux);
    case Op::kNot:
      return ~x;
    default:
      QUERN_CHECK_MSG(false, "no integer operation");
  }
}

// Index values are mathematical integers: leaving 64 bits is reported, not wrapped.
int64_t IndexArithmetic(Op op, const Scalar* s, bool* overflow) {
  const int64_t x = s[0].i;
  const int64_t y = GetOpInfo(op).min_sources > 1 ? s[1].i : 0;
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  int64_t result = 0;
  bool left = false;
  switch (op) {
    case Op::kAdd:
      left = __builtin_add_overflow(x, y, &result);
      break;
    case Op::kSub:
      left = __builtin_sub_overflow(x, y, &result);
      break;
    case Op::kMul:
      left = __builtin_mul_overflow(x, y, &result);
      break;
    case Op::kMulAdd:
      left = __builtin_mul_overflow(x, y, &result);
      left |= __builtin_add_overflow(result, s[2].i, &result);
      break;
    case Op::kNeg:
    case Op::kAbs:
      left = x == kLeast;
      result = left ? 0 : (op == Op::kNeg || x < 0 ? -x : x);
      break;
    case Op::kFloorDiv:
    case Op::kTruncDiv:
      left = x == kLeast && y == -1;
      result = Quotient(op, ScalarType::kIndex, x, y);
      break;
    default:
      return IntegerArithmetic(op, ScalarType::kI64, s);
  }
  if (left) *overflow = true;
  return result;
}

int64_t FloatToInteger(ScalarType to, double x) {
  if (std::isnan(x)) return 0;
  x = std::trunc(x);
  if (to == ScalarType::kU64) {
    if (x <= 0) return 0;
    return x >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(x));
  }
  const ScalarType bounds = to == ScalarType::kIndex ? ScalarType::kI64 : to;
  // The double of the largest i64 is 2^63, which is why >= is needed.
  if (x <= static_cast<double>(MinInteger(bounds))) return MinInteger(bounds);
  if (x >= static_cast<double>(MaxInteger(bounds))) return MaxInteger(bounds);
  return static_cast<int64_t>(x);
}

double IntegerToFloat(ScalarType from, ScalarType to, int64_t x) {
  const bool is_unsigned = from == ScalarType::kU64;
  if (to == ScalarType::kF64) {
    return is_unsigned ? static_cast<double>(static_cast<uint64_t>(x)) : static_cast<double>(x);
  }
  // Straight to float: by way of double it would be rounded twice.
  return is_unsigned ? static_cast<float>(static_cast<uint64_t>(x)) : static_cast<float>(x);
}

Scalar Convert(ScalarType from, ScalarType to, Scalar x) {
  if (IsFloat(from)) {
    if (IsFloat(to)) return OfFloat(RoundFloat(to, x.f));
    if (to == ScalarType::kBool) return OfInt(x.f != 0);
    return OfInt(FloatToInteger(to, x.f));
  }
  if (IsFloat(to)) return OfFloat(RoundFloat(to, IntegerToFloat(from, to, x.i)));
  return OfInt(WrapInteger(to, x.i));
}

}  // namespace

Scalar Evaluate(Op op, ScalarType from, ScalarType to, const Scalar* s, bool* overflow) {
  switch (op) {
    case Op::kWhere:
      return s[0].i != 0 ? s[1] : s[2];
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe:
      return OfInt(Compare(op, from, s));
    case Op::kCast:
      return Convert(from, to, s[0]);
    case Op::kBitcast:
      return ScalarFromBits(to, ScalarToBits(from, s[0]));
    default:
      break;
  }
  if (IsFloat(from)) return OfFloat(RoundFloat(from, FloatArithmetic(op, from, s)));
  if (from == ScalarType::kBool) return OfInt(BoolArithmetic(op, s));
  if (from == ScalarType::kIndex) return OfInt(IndexArithmetic(op, s, overflow));
  return OfInt(WrapInteger(from, IntegerArithmetic(op, from, s)));
}

Scalar ReduceStart(Op op, ScalarType type) {
  if (op == Op::kMax || op == Op::kMin) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (IsFloat(type)) return OfFloat(op == Op::kMax ? -infinity : infinity);
    return OfInt(op == Op::kMax ? MinInteger(type) : MaxInteger(type));
  }
  const int unit = op == Op::kMul ? 1 : 0;
  return IsFloat(type) ? OfFloat(unit) : OfInt(unit);
}

uint64_t ScalarToBits(ScalarType type, Scalar value) {
  switch (type) {
    case ScalarType::kF16:
      return FloatToHalfBits(static_cast<float>(value.f));
    case ScalarType::kBF16:
      return FloatToBFloatBits(static_cast<float>(value.f));
    case ScalarType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value.f));
    default:
      return static_cast<uint64_t>(value.i);  // The same 64 bits for f64.
  }
}

Scalar ScalarFromBits(ScalarType type, uint64_t bits) {
  switch (type) {
    case ScalarType::kF16:
      return OfFloat(HalfBitsToFloat(static_cast<uint16_t>(bits)));
    case ScalarType::kBF16:
      return OfFloat(BFloatBitsToFloat(static_cast<uint16_t>(bits)));
    case ScalarType::kF32:
      return OfFloat(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case ScalarType::kF64:
      return OfFloat(std::bit_cast<double>(bits));
    default:
      return OfInt(WrapInteger(type, static_cast<int64_t>(bits)));
  }
}

}  // namespace quern
