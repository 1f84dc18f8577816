#ifndef QUERN_TESTS_FUZZ_TEST_BUFFERS_H_
#define QUERN_TESTS_FUZZ_TEST_BUFFERS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "rewrite/concat.h"
#include "rewrite/evaluate.h"

namespace quern {

/// Random numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Bits() { return engine_(); }
  /// 0 … n − 1.
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[Below(static_cast<int64_t>(from.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// A param of a kernel under test.
struct TestBuffer {
  int64_t slot = 0;
  DType dtype;
  int64_t elements = 0;
  bool loaded = false;
  bool stored = false;
  /// Values of a buffer of indices; others are filled with all sorts of values.
  int64_t least_index = 0;
  int64_t largest_index = -1;
  /// How far an element of a stored float buffer may be from the interpreter's; 0: not at all.
  double tolerance = 0;

  int64_t bytes() const { return elements * ByteSize(dtype.scalar); }
};

enum class FloatFill : uint8_t {
  kBounded,  ///< in [-2, 2]
  kFinite,   ///< also -0, subnormal, huge
  kAny,      ///< also NaN and infinities
};

inline double RandomFloat(Random& random, FloatFill fill, ScalarType type) {
  if (fill != FloatFill::kBounded && random.Chance(20)) {
    const double inf = std::numeric_limits<double>::infinity();
    switch (random.Below(fill == FloatFill::kAny ? 7 : 4)) {
      case 0:
        return -0.0;
      case 1:
        return type == ScalarType::kF16 ? 65504 : 3e38;
      case 2:
        return type == ScalarType::kF16 ? 6e-8 : 1e-40;
      case 3:
        return random.Uniform(-70000, 70000);
      case 4:
        return inf;
      case 5:
        return -inf;
      default:
        return std::numeric_limits<double>::quiet_NaN();
    }
  }
  // Half of the numbers have few digits: sums of them are exact, and wrong ones stand out.
  return random.Chance(50) ? static_cast<double>(random.Between(-16, 16)) / 8
                           : random.Uniform(-2, 2);
}

/// Random contents for a buffer of `b.elements`.
inline void FillRandom(const TestBuffer& b, Random& random, FloatFill fill, void* data) {
  const ScalarType type = b.dtype.scalar;
  const int size = ByteSize(type);
  auto* at = static_cast<std::byte*>(data);
  for (int64_t i = 0; i < b.elements; ++i, at += size) {
    Scalar value;
    if (IsFloat(type)) {
      value.f = RoundFloat(type, RandomFloat(random, fill, type));
    } else if (b.least_index <= b.largest_index) {
      value.i = random.Between(b.least_index, b.largest_index);
    } else if (random.Chance(70)) {
      value.i = WrapInteger(type, random.Between(-9, 9));
    } else if (random.Chance(30)) {
      value.i = random.Chance(50) ? MinInteger(type) : MaxInteger(type);
    } else {
      value.i = WrapInteger(type, static_cast<int64_t>(random.Bits()));
    }
    if (type == ScalarType::kBool) value.i &= 1;
    const uint64_t bits = ScalarToBits(type, value);
    std::memcpy(at, &bits, size);
  }
}

inline Scalar ReadElement(DType dtype, const void* data, int64_t element) {
  const int size = ByteSize(dtype.scalar);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(data) + element * size, size);
  return ScalarFromBits(dtype.scalar, bits);
}

/// "" if the two buffers agree, else how many elements differ and what the first of them are. Any
/// NaN equals any other, and 0 equals -0.
inline std::string CompareBuffers(const TestBuffer& b, const void* expected, const void* actual) {
  int64_t wrong = 0;
  std::string first;
  for (int64_t i = 0; i < b.elements; ++i) {
    const Scalar e = ReadElement(b.dtype, expected, i);
    const Scalar a = ReadElement(b.dtype, actual, i);
    if (!IsFloat(b.dtype)) {
      if (e.i == a.i) continue;
      if (++wrong <= 4) Append(first, "\n  [", i, "] expected ", e.i, ", got ", a.i);
      continue;
    }
    if (e.f == a.f || (std::isnan(e.f) && std::isnan(a.f))) continue;
    if (std::isfinite(e.f) && std::isfinite(a.f) && std::fabs(e.f - a.f) <= b.tolerance) continue;
    if (++wrong <= 4) {
      Append(first, "\n  [", i, "] expected ", e.f, ", got ", a.f, " (tolerance ", b.tolerance,
             ")");
    }
  }
  if (wrong == 0) return "";
  return Concat("buffer ", b.slot, " (", DTypeName(b.dtype), ", ", b.elements,
                " elements): ", wrong, " differ", first);
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_TEST_BUFFERS_H_
