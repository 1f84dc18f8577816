#ifndef QUERN_REWRITE_WIDE_INTEGER_H_
#define QUERN_REWRITE_WIDE_INTEGER_H_

#include <cstdint>

namespace quern {

/// Wide enough for the product of two 64-bit numbers, so that ranges and constants can be combined
/// first and checked afterwards.
using Wide = __int128;

inline bool FitsInt64(Wide x) { return x >= INT64_MIN && x <= INT64_MAX; }

/// Rounds to minus infinity; `b` is not 0.
inline Wide FloorDivide(Wide a, Wide b) {
  const Wide q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
inline Wide CeilDivide(Wide a, Wide b) { return -FloorDivide(-a, b); }

}  // namespace quern

#endif  // QUERN_REWRITE_WIDE_INTEGER_H_
