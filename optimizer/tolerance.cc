#include "optimizer/tolerance.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "rewrite/graph.h"

namespace quern {
namespace {

double Epsilon(DType t) {
  switch (t.scalar) {
    case ScalarType::kF16:
      return 0x1p-11;
    case ScalarType::kBF16:
      return 0x1p-8;
    case ScalarType::kF32:
      return 0x1p-24;
    case ScalarType::kF64:
      return 0x1p-53;
    default:
      return 0;
  }
}

// The largest number of terms that one element of the kernel sums up, nested reductions multiplied;
// those of stores that read one another's temporaries are added.
double Terms(const UOp* sink) {
  double sum = 0;
  for (const UOp* store : Toposort(sink)) {
    if (store->op != Op::kStore) continue;
    const std::vector<const UOp*> order = Toposort(store);
    absl::flat_hash_set<const UOp*> scanned;
    for (const UOp* u : order) {
      if (u->op == Op::kScan) scanned.insert(u->src().begin() + 1, u->src().end());
    }
    double terms = 1;
    for (const UOp* u : order) {
      if (u->op == Op::kRange && (IsReduceAxis(u->range_type()) || scanned.contains(u))) {
        terms *= std::max<double>(1, static_cast<double>(u->range_size()));
      }
    }
    sum += terms;
  }
  return std::max(sum, 1.0);
}

}  // namespace

double OutputTolerance(const UOp* kernel, DType output) {
  const double epsilon = Epsilon(output);
  if (epsilon == 0) return 0;
  // Narrow outputs are computed in f32, so only their own rounding and what lies near its edge
  // count.
  const double accumulation = std::min(epsilon, 0x1p-24) * 4 * std::sqrt(Terms(kernel));
  return 4 * epsilon + accumulation + 16 * std::min(epsilon, 0x1p-24);
}

double ToleranceFor(const UOp* kernel) {
  double tolerance = 0;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op != Op::kStore) continue;
    tolerance = std::max(tolerance, 2 * OutputTolerance(kernel, u->src(1)->dtype));
  }
  return tolerance;
}

}  // namespace quern
