#ifndef QUERN_REWRITE_BOUNDS_H_
#define QUERN_REWRITE_BOUNDS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "rewrite/uop.h"

namespace quern {

/// A closed interval that holds every value a node can take. The ends saturate: INT64_MIN and
/// INT64_MAX also stand for "no bound" (a u64 may be larger than INT64_MAX).
struct Bounds {
  int64_t min = INT64_MIN;
  int64_t max = INT64_MAX;
  bool operator==(const Bounds&) const = default;

  /// True when both ends are real and equal.
  bool IsSingle() const { return min == max && min != INT64_MIN && max != INT64_MAX; }
  /// True when every value lies in [low, high].
  bool Within(int64_t low, int64_t high) const { return low <= min && max <= high; }
};

/// Everything that a value of this element type can be; [INT64_MIN, INT64_MAX] for floats.
Bounds TypeBounds(ScalarType type);

/// Intervals of Index, integer and bool nodes, kept in a side array by node id: asking again is an
/// array read. One analysis serves one graph (with its base); nodes made later are picked up.
class BoundsAnalysis {
 public:
  /// The interval of `u`; for a vector, of all its lanes together. For float nodes it says nothing.
  Bounds Of(const UOp* u);

  /// From now on `u` is known to lie in `bounds` as well. Forgets what was derived so far.
  void Assume(const UOp* u, Bounds bounds);

 private:
  Bounds Compute(const UOp* u) const;
  Bounds Known(const UOp* u) const { return bounds_[u->id]; }

  std::vector<Bounds> bounds_;
  std::vector<uint8_t> known_;
  std::vector<std::pair<const UOp*, Bounds>> assumed_;
  std::vector<const UOp*> stack_;
};

}  // namespace quern

#endif  // QUERN_REWRITE_BOUNDS_H_
