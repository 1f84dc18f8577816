#include "optimizer/reads_in_place.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kMostRowTiles = 24;
// Of the second-level cache: what a panel may take, and how many of its ways.
constexpr int64_t kCacheShare = 8;
constexpr int64_t kWays = 16, kWaysForPanel = 8;

}  // namespace

bool ReadsInPlace(const Target& target, const StatementAccesses& reduce, const UOp* index,
                  int64_t lanes, int64_t row_tiles) {
  if (row_tiles > kMostRowTiles || index->src(0)->op != Op::kParam) return false;
  struct Step {
    int64_t distance = 0, count = 1;
  };
  std::vector<Step> steps;
  const LinearForm form = ToLinear(index->src(1));
  for (const UOp* r : reduce.node->src().subspan(1)) {
    const int64_t distance = form.CoefficientOf(r);
    if (distance < 0) return false;
    if (distance > 0) steps.push_back({distance, r->range_size()});
  }
  if (steps.empty()) return false;
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.distance < b.distance; });
  // An axis that was cut in two still takes equal steps.
  int64_t count = 1;
  for (const Step& s : steps) {
    if (s.distance != steps[0].distance * count) return false;
    count *= s.count;
  }
  const int64_t element = ByteSize(index->dtype.scalar);
  if (count * lanes * element > target.l2_bytes / kCacheShare) return false;
  const int64_t way = target.l2_bytes / kWays;
  const int64_t places = way / std::gcd(steps[0].distance * element, way);
  return count <= places * kWaysForPanel;
}

}  // namespace quern
