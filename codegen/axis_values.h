#ifndef QUERN_CODEGEN_AXIS_VALUES_H_
#define QUERN_CODEGEN_AXIS_VALUES_H_

#include <cstdint>
#include <vector>

#include "rewrite/range_sets.h"

namespace quern {

/// A value for each axis of a RangeSets, by the number of its bit there.
using AxisValues = std::vector<int64_t>;

inline size_t AxisBitNumber(const RangeSets& sets, const UOp* range) {
  return static_cast<size_t>(__builtin_ctzll(sets.Bit(range)));
}

/// Calls `visit()` for each combination of values of the axes in `set`, the first axis varying
/// slowest, with those values in `values`. Those of other axes stay.
template <typename Visit>
void ForEachCombination(const RangeSets& sets, uint64_t set, AxisValues& values,
                        const Visit& visit) {
  const std::vector<const UOp*> axes = sets.Members(set);
  int64_t count = 1;
  for (const UOp* r : axes) count *= r->range_size();
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t i = axes.size(); i-- > 0;) {
      values[AxisBitNumber(sets, axes[i])] = rest % axes[i]->range_size();
      rest /= axes[i]->range_size();
    }
    visit();
  }
}

/// The place of the combination `values` in that order.
inline int64_t CombinationNumber(const RangeSets& sets, uint64_t set, const AxisValues& values) {
  int64_t number = 0;
  for (; set != 0; set &= set - 1) {
    const int bit = __builtin_ctzll(set);
    number = number * sets.ranges()[bit]->range_size() + values[bit];
  }
  return number;
}

}  // namespace quern

#endif  // QUERN_CODEGEN_AXIS_VALUES_H_
