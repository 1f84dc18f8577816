#ifndef QUERN_OPTIMIZER_WORK_H_
#define QUERN_OPTIMIZER_WORK_H_

#include "rewrite/uop.h"

namespace quern {

/// What a kernel AST computes when every value is computed as seldom as its place in the loop nest
/// allows: once per iteration of the loops around the innermost loop that it depends on. Register
/// axes are no loops: they repeat only what depends on them.
struct WorkEstimate {
  double flops = 0;  ///< arithmetic operations on values (a fused multiply-add is two)
  double cost = 0;   ///< all operations, loads and stores, weighted by how long they take
  double bytes = 0;  ///< memory touched at least: every buffer once
  bool reduces = false;
  /// Of `cost`, reductions that are hard to divide among lanes and threads: those outside all
  /// output loops although there are some, and those inside the loop of another reduction.
  double serial_cost = 0;
};

/// QUERN_CHECKs that the kernel has at most 64 ranges.
WorkEstimate EstimateWork(const UOp* sink);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_WORK_H_
