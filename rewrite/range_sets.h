#ifndef QUERN_REWRITE_RANGE_SETS_H_
#define QUERN_REWRITE_RANGE_SETS_H_

#include <cstdint>
#include <vector>

#include "rewrite/uop.h"

namespace quern {

/// Which loop variables each node of a kernel depends on: one bit per range, bits numbered by axis
/// order. A kernel may have at most 64 ranges (`kMaxRanges`), which VerifyKernel checks.
///
/// A range that a REDUCE or a LOOP closes is not free in the REDUCE or LOOP itself.
class RangeSets {
 public:
  static constexpr size_t kMaxRanges = 64;

  explicit RangeSets(const UOp* root);

  /// All ranges below the root, outermost first.
  const std::vector<const UOp*>& ranges() const { return ranges_; }
  /// The free ranges of `u`, which must be part of the root.
  uint64_t Of(const UOp* u) const { return free_[u->id]; }
  /// The bit of one range; 0 if the root does not use it.
  uint64_t Bit(const UOp* range) const;
  /// The ranges whose bits are set, outermost first.
  std::vector<const UOp*> Members(uint64_t set) const;
  bool Depends(const UOp* u, const UOp* range) const { return (Of(u) & Bit(range)) != 0; }

 private:
  std::vector<const UOp*> ranges_;
  std::vector<uint64_t> free_;  // by node id
};

/// Sorts ranges outermost first.
void SortByAxis(std::vector<const UOp*>& ranges);

}  // namespace quern

#endif  // QUERN_REWRITE_RANGE_SETS_H_
