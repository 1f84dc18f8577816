#ifndef QUERN_CODEGEN_REGISTER_AXES_H_
#define QUERN_CODEGEN_REGISTER_AXES_H_

#include <cstdint>

#include "rewrite/graph.h"
#include "rewrite/range_sets.h"

namespace quern {

/// The register axes of one statement, before Expand removes them: at most one becomes the lanes of
/// vectors, the others become copies.
struct RegisterAxes {
  explicit RegisterAxes(const RangeSets& statement);

  const RangeSets& sets;
  const UOp* lane = nullptr;
  uint64_t lane_bit = 0;
  uint64_t unrolled_bits = 0;

  uint64_t Unrolled(const UOp* u) const { return sets.Of(u) & unrolled_bits; }
  bool IsVector(const UOp* u) const { return (sets.Of(u) & lane_bit) != 0; }
  /// Lanes of a vector; 1 where no axis becomes lanes.
  int width() const { return lane == nullptr ? 1 : static_cast<int>(lane->range_size()); }
};

/// For a load whose lanes lie apart in memory: an unrolled axis along which it is contiguous, or
/// nullptr. The copies along that axis together are a block that is read by rows and transposed in
/// registers. With `group`, an unrolled axis too, it is blocks of whole groups along that axis that
/// are contiguous, and move as one.
const UOp* TransposedAxis(const RegisterAxes& axes, const UOp* load, const UOp* group);

/// Whether an address has the neighbours along `axis`, an unrolled one, side by side, lane after
/// lane (or the same for all lanes), and no gate between them.
bool HoldsGroups(const RegisterAxes& axes, const UOp* index, const UOp* axis);

/// The unrolled axis whose copies of the store fill the gaps between its lanes, so that all of them
/// are one store; nullptr if there is none.
const UOp* FindStoredGroups(const RegisterAxes& axes, const UOp* store);

}  // namespace quern

#endif  // QUERN_CODEGEN_REGISTER_AXES_H_
