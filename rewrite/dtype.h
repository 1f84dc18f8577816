#ifndef QUERN_REWRITE_DTYPE_H_
#define QUERN_REWRITE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern {

/// Element types. `kIndex` is a mathematical integer that lowering turns into i32 or i64; `kVoid`
/// is the type of statements.
enum class ScalarType : uint8_t {
  kVoid,
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kIndex,
};
inline constexpr int kScalarTypeCount = 15;

/// A scalar type and a lane count: `{kF32, 16}` is a vector of sixteen floats, printed `f32x16`.
struct DType {
  ScalarType scalar = ScalarType::kVoid;
  uint16_t lanes = 1;

  constexpr DType() = default;
  constexpr DType(ScalarType s, int lane_count = 1)  // NOLINT(google-explicit-constructor)
      : scalar(s), lanes(static_cast<uint16_t>(lane_count)) {}
  constexpr bool operator==(const DType&) const = default;

  constexpr DType WithLanes(int lane_count) const { return {scalar, lane_count}; }
  constexpr DType Scalar() const { return {scalar, 1}; }
};

inline constexpr DType kVoidType{ScalarType::kVoid};
inline constexpr DType kBoolType{ScalarType::kBool};
inline constexpr DType kI8Type{ScalarType::kI8};
inline constexpr DType kI32Type{ScalarType::kI32};
inline constexpr DType kI64Type{ScalarType::kI64};
inline constexpr DType kF16Type{ScalarType::kF16};
inline constexpr DType kBF16Type{ScalarType::kBF16};
inline constexpr DType kF32Type{ScalarType::kF32};
inline constexpr DType kF64Type{ScalarType::kF64};
inline constexpr DType kIndexType{ScalarType::kIndex};

constexpr bool IsFloat(ScalarType s) { return s >= ScalarType::kF16 && s <= ScalarType::kF64; }
constexpr bool IsSigned(ScalarType s) { return s >= ScalarType::kI8 && s <= ScalarType::kI64; }
constexpr bool IsUnsigned(ScalarType s) { return s >= ScalarType::kU8 && s <= ScalarType::kU64; }
/// Wrapping integers of a fixed width; neither bool nor Index.
constexpr bool IsInteger(ScalarType s) { return IsSigned(s) || IsUnsigned(s); }
constexpr bool IsFloat(DType t) { return IsFloat(t.scalar); }
constexpr bool IsInteger(DType t) { return IsInteger(t.scalar); }
constexpr bool IsIndex(DType t) { return t.scalar == ScalarType::kIndex; }
constexpr bool IsBool(DType t) { return t.scalar == ScalarType::kBool; }

/// Bytes of one element in memory: bool is 1, Index and void are 0 (they are never stored).
int ByteSize(ScalarType s);
/// Bits of one element: bool is 1.
int BitWidth(ScalarType s);

/// "f32", "bf16", "bool", "index", "void"; with lanes "f32x16".
std::string_view ScalarTypeName(ScalarType s);
std::string DTypeName(DType t);
/// The inverse of DTypeName; nullopt for an unknown name.
std::optional<DType> ParseDType(std::string_view name);

/// The smallest and largest value of a fixed-width integer type, as bits in an int64 (for u64 the
/// largest value is -1 read as unsigned). QUERN_CHECKs that `s` is an integer or bool.
int64_t MinInteger(ScalarType s);
int64_t MaxInteger(ScalarType s);

/// Wraps `value` to the width of `s` and extends it to 64 bits again (sign for signed types, zero
/// for unsigned ones and bool). This is the canonical constant of type `s`.
int64_t WrapInteger(ScalarType s, int64_t value);

/// Rounds a double to the nearest value of a float type (ties to even), as a double. f16 and bf16
/// are reached by way of f32 (docs/semantics.md, "Casts").
double RoundFloat(ScalarType s, double value);

/// Bit patterns of the 16-bit float types.
uint16_t FloatToHalfBits(float value);
float HalfBitsToFloat(uint16_t bits);
uint16_t FloatToBFloatBits(float value);
float BFloatBitsToFloat(uint16_t bits);

}  // namespace quern

#endif  // QUERN_REWRITE_DTYPE_H_
