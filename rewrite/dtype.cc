#include "rewrite/dtype.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "rewrite/check.h"

namespace quern {
namespace {

struct ScalarInfo {
  std::string_view name;
  int bytes;
  int bits;
};

constexpr std::array<ScalarInfo, kScalarTypeCount> kScalars = {{
    {"void", 0, 0},
    {"bool", 1, 1},
    {"i8", 1, 8},
    {"i16", 2, 16},
    {"i32", 4, 32},
    {"i64", 8, 64},
    {"u8", 1, 8},
    {"u16", 2, 16},
    {"u32", 4, 32},
    {"u64", 8, 64},
    {"f16", 2, 16},
    {"bf16", 2, 16},
    {"f32", 4, 32},
    {"f64", 8, 64},
    {"index", 0, 0},
}};

const ScalarInfo& Info(ScalarType s) { return kScalars[static_cast<size_t>(s)]; }

}  // namespace

int ByteSize(ScalarType s) { return Info(s).bytes; }
int BitWidth(ScalarType s) { return Info(s).bits; }
std::string_view ScalarTypeName(ScalarType s) { return Info(s).name; }

std::string DTypeName(DType t) {
  std::string name(ScalarTypeName(t.scalar));
  if (t.lanes != 1) name += "x" + std::to_string(t.lanes);
  return name;
}

std::optional<DType> ParseDType(std::string_view name) {
  int lanes = 1;
  if (size_t x = name.rfind('x'); x != std::string_view::npos && x + 1 < name.size() &&
                                  name[x + 1] >= '0' && name[x + 1] <= '9') {
    std::string_view digits = name.substr(x + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    if (lanes < 1 || lanes > 65535) return std::nullopt;
    name = name.substr(0, x);
  }
  for (int i = 0; i < kScalarTypeCount; ++i) {
    if (kScalars[i].name == name) return DType(static_cast<ScalarType>(i), lanes);
  }
  return std::nullopt;
}

int64_t MinInteger(ScalarType s) {
  QUERN_CHECK(IsInteger(s) || s == ScalarType::kBool);
  if (!IsSigned(s)) return 0;
  return -1 - MaxInteger(s);
}

int64_t MaxInteger(ScalarType s) {
  QUERN_CHECK(IsInteger(s) || s == ScalarType::kBool);
  if (s == ScalarType::kBool) return 1;
  const int bits = BitWidth(s) - (IsSigned(s) ? 1 : 0);
  return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

int64_t WrapInteger(ScalarType s, int64_t value) {
  switch (s) {
    case ScalarType::kBool:
      return value != 0;
    case ScalarType::kI8:
      return static_cast<int8_t>(value);
    case ScalarType::kI16:
      return static_cast<int16_t>(value);
    case ScalarType::kI32:
      return static_cast<int32_t>(value);
    case ScalarType::kU8:
      return static_cast<uint8_t>(value);
    case ScalarType::kU16:
      return static_cast<uint16_t>(value);
    case ScalarType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

double RoundFloat(ScalarType s, double value) {
  switch (s) {
    case ScalarType::kF16:
      return HalfBitsToFloat(FloatToHalfBits(static_cast<float>(value)));
    case ScalarType::kBF16:
      return BFloatBitsToFloat(FloatToBFloatBits(static_cast<float>(value)));
    case ScalarType::kF32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

uint16_t FloatToHalfBits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // Subnormal in half: let the float adder round at 2^-24.
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float HalfBitsToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToBFloatBits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float BFloatBitsToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace quern
