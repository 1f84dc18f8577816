#ifndef QUERN_BENCH_SUITE_REFERENCE_H_
#define QUERN_BENCH_SUITE_REFERENCE_H_

#include <string>

#include "bench/suite/workload.h"

namespace quern {

/// Compares the output in `buffers` with the formula computed in double precision: every element of
/// small outputs; of large ones whether each is a number, and the values at a grid of rows and
/// columns with all borders. `bare` leaves the tail of a product out, as most peers do. "ok", or
/// the first element that is wrong.
std::string CheckOutput(const Workload& workload, const Buffers& buffers, bool bare);

/// Fills the output with what CheckOutput refuses.
void PoisonOutput(const Workload& workload, const Buffers& buffers);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_REFERENCE_H_
