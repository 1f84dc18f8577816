#ifndef QUERN_DRIVER_MACHINE_PEAK_H_
#define QUERN_DRIVER_MACHINE_PEAK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "rewrite/dtype.h"

namespace quern {

/// Work that nothing but one limit of the machine slows down: `amount` operations or bytes in each
/// call. To be timed beside what it is compared with: a shared machine's limits change from one
/// second to the next.
struct LimitRun {
  std::function<void()> call;
  double amount = 0;
};

/// Some milliseconds of independent multiply-adds in registers, as MeasurePeakFlops times.
LimitRun MultiplyAddRun(DType dtype, int threads);

/// Triad and reading alone, as MeasureBandwidth times; empty if there is no memory for it.
std::vector<LimitRun> StreamRuns(int threads, int64_t cache_bytes);

/// Floating-point operations per second that this processor reaches on independent fused
/// multiply-adds in registers, on `threads` threads. Measured (about 50 ms), not looked up; it is
/// what a kernel could reach if memory cost nothing. f64 counts for f64, f32 for all other types.
double MeasurePeakFlops(DType dtype, int threads);

/// Bytes per second that `threads` threads move over arrays much larger than the caches: the better
/// of a[i] = b[i] + s·c[i], counting each byte read or written once, and of reading alone. Takes
/// some tenths of a second. 0 if there is no memory for it.
double MeasureBandwidth(int threads, int64_t cache_bytes);

}  // namespace quern

#endif  // QUERN_DRIVER_MACHINE_PEAK_H_
