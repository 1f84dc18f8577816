#ifndef QUERN_RUNTIME_RANDOM_DATA_H_
#define QUERN_RUNTIME_RANDOM_DATA_H_

#include <cstdint>

#include "rewrite/dtype.h"

namespace quern {

/// Fills `elements` of `dtype` at `data` with finite random values: floats in [-1, 1), integers in
/// [-8, 8] (in [0, 16] if unsigned), bool either way. The same seed gives the same data everywhere.
void FillRandom(ScalarType dtype, int64_t elements, uint64_t seed, void* data);

/// Fills with a value that no kernel should leave behind: NaN for floats, a byte pattern otherwise.
void FillPoison(ScalarType dtype, int64_t elements, void* data);

/// The largest differences between two buffers. NaN equals NaN and infinity equals infinity of the
/// same sign; a difference that is not finite counts as infinity.
struct Difference {
  double max_abs = 0;
  double max_rel = 0;  ///< max_abs relative to the largest finite magnitude in `expected`
  int64_t worst = -1;  ///< the element with the largest difference, -1 if all are equal
};
Difference CompareData(ScalarType dtype, int64_t elements, const void* expected,
                       const void* actual);

/// Element `i` as a number (integers above 2^53 are rounded).
double ElementAsDouble(ScalarType dtype, const void* data, int64_t i);

}  // namespace quern

#endif  // QUERN_RUNTIME_RANDOM_DATA_H_
