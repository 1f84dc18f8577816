#include "runtime/random_data.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "rewrite/check.h"

namespace quern {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): one multiply-xorshift per number.
struct Random {
  uint64_t state;
  uint64_t Next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
};

// Calls `use(pointer to the first element)` with the C++ type that holds `dtype`.
template <typename Use>
void WithType(ScalarType dtype, const Use& use) {
  switch (dtype) {
    case ScalarType::kBool:
    case ScalarType::kU8:
      return use(uint8_t{});
    case ScalarType::kI8:
      return use(int8_t{});
    case ScalarType::kI16:
      return use(int16_t{});
    case ScalarType::kU16:
    case ScalarType::kF16:
    case ScalarType::kBF16:
      return use(uint16_t{});
    case ScalarType::kI32:
      return use(int32_t{});
    case ScalarType::kU32:
      return use(uint32_t{});
    case ScalarType::kI64:
      return use(int64_t{});
    case ScalarType::kU64:
      return use(uint64_t{});
    case ScalarType::kF32:
      return use(float{});
    case ScalarType::kF64:
      return use(double{});
    default:
      QUERN_CHECK_MSG(false, "a type that is never stored");
  }
}

template <typename T>
T FromNumber(ScalarType dtype, double value) {
  if (dtype == ScalarType::kF16) return static_cast<T>(FloatToHalfBits(static_cast<float>(value)));
  if (dtype == ScalarType::kBF16) {
    return static_cast<T>(FloatToBFloatBits(static_cast<float>(value)));
  }
  return static_cast<T>(value);
}

template <typename T>
double ToNumber(ScalarType dtype, T value) {
  if (dtype == ScalarType::kF16) return HalfBitsToFloat(static_cast<uint16_t>(value));
  if (dtype == ScalarType::kBF16) return BFloatBitsToFloat(static_cast<uint16_t>(value));
  return static_cast<double>(value);
}

}  // namespace

void FillRandom(ScalarType dtype, int64_t elements, uint64_t seed, void* data) {
  Random random{seed};
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(data);
    for (int64_t i = 0; i < elements; ++i) {
      const uint64_t bits = random.Next();
      double value = 0;
      if (IsFloat(dtype)) {
        value = static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
      } else if (dtype == ScalarType::kBool) {
        value = static_cast<double>(bits >> 63);
      } else {
        value = static_cast<double>((bits >> 40) % 17) - (IsSigned(dtype) ? 8 : 0);
      }
      out[i] = FromNumber<T>(dtype, value);
    }
  });
}

void FillPoison(ScalarType dtype, int64_t elements, void* data) {
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(data);
    T poison;
    std::memset(&poison, 0xa5, sizeof(poison));
    if (IsFloat(dtype)) {
      poison = FromNumber<T>(dtype, std::numeric_limits<double>::quiet_NaN());
    }
    for (int64_t i = 0; i < elements; ++i) out[i] = poison;
  });
}

Difference CompareData(ScalarType dtype, int64_t elements, const void* expected,
                       const void* actual) {
  Difference result;
  double magnitude = 0;
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* e = static_cast<const T*>(expected);
    const T* a = static_cast<const T*>(actual);
    for (int64_t i = 0; i < elements; ++i) {
      const double x = ToNumber(dtype, e[i]);
      const double y = ToNumber(dtype, a[i]);
      if (std::isfinite(x)) magnitude = std::max(magnitude, std::fabs(x));
      if (e[i] == a[i] || x == y || (std::isnan(x) && std::isnan(y))) continue;
      double difference = std::fabs(x - y);
      if (!std::isfinite(difference)) difference = std::numeric_limits<double>::infinity();
      if (difference > result.max_abs || result.worst < 0) {
        result.max_abs = difference;
        result.worst = i;
      }
    }
  });
  if (result.max_abs > 0) result.max_rel = magnitude > 0 ? result.max_abs / magnitude : HUGE_VAL;
  return result;
}

double ElementAsDouble(ScalarType dtype, const void* data, int64_t i) {
  double value = 0;
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    value = ToNumber(dtype, static_cast<const T*>(data)[i]);
  });
  return value;
}

}  // namespace quern
