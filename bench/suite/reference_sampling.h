#ifndef QUERN_BENCH_SUITE_REFERENCE_SAMPLING_H_
#define QUERN_BENCH_SUITE_REFERENCE_SAMPLING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/suite/workload.h"

namespace quern {

/// Half an f32 unit in the last place, relative.
constexpr double kEpsilon = 0x1p-24;

/// What an output element must be.
struct Expected {
  double value = 0;
  double tolerance = 0;
};

/// Of a sum in f32 of `terms` terms whose squares have the sum `squares`: rounding errors walk at
/// random in the size of the partial sums, which itself is that of a random walk for data around
/// zero.
double SumTolerance(double terms, double squares);

/// All of 0..size-1 if they are at most `grid`, else so many of them, the two at each end included.
std::vector<int64_t> Chosen(int64_t size, int64_t grid);

/// What is wrong with element `at` of the output, or nothing.
std::string Compare(const Workload& w, const Buffers& buffers, int64_t at,
                    const Expected& expected);

/// "ok", or the first of a sample of elements that is wrong.
std::string CheckConvolution(const Workload& w, const Buffers& buffers);
std::string CheckAttention(const Workload& w, const Buffers& buffers);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_REFERENCE_SAMPLING_H_
