#include "optimizer/reads_in_place.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kMostRowTiles = 24;
// What a panel may take of each cache. Its ways are one page each in the first level.
constexpr int64_t kFirstCacheShare = 2, kSecondCacheShare = 8;
constexpr int64_t kFirstCacheWay = 4096, kSecondCacheWays = 16;

struct Steps {
  int64_t distance = 0;  ///< elements; 0: they are not equal
  int64_t count = 1;
};

// Over the reduced axes. An axis that was cut in two still takes equal steps.
Steps StepsOf(const StatementAccesses& reduce, const LinearForm& form) {
  std::vector<Steps> axes;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    const int64_t distance = form.CoefficientOf(r);
    if (distance < 0) return {};
    if (distance > 0) axes.push_back({distance, r->range_size()});
  }
  if (axes.empty()) return {};
  std::sort(axes.begin(), axes.end(),
            [](const Steps& a, const Steps& b) { return a.distance < b.distance; });
  Steps all = {axes[0].distance, 1};
  for (const Steps& s : axes) {
    if (s.distance != all.distance * all.count) return {};
    all.count *= s.count;
  }
  return all;
}

// The ranges of an operand along which it is read anew for given values of those that all follow.
std::vector<const UOp*> OwnRanges(const RangeSets& sets, const StatementAccesses& reduce,
                                  const UOp* index) {
  std::vector<const UOp*> own;
  for (const UOp* r : sets.Members(sets.Of(index))) {
    bool followed = true;
    for (const UOp* other : reduce.loads) followed &= sets.Depends(other, r);
    const std::span<const UOp* const> sources = reduce.node->src();
    const bool reduced = std::find(sources.begin() + 1, sources.end(), r) != sources.end();
    if (!followed || reduced) own.push_back(r);
  }
  return own;
}

}  // namespace

int64_t OperandBytes(const RangeSets& sets, const StatementAccesses& reduce, const UOp* index) {
  int64_t bytes = ByteSize(index->dtype.scalar);
  for (const UOp* r : OwnRanges(sets, reduce, index)) bytes *= r->range_size();
  return bytes;
}

bool StaysInCache(const Target& target, const RangeSets& sets, const StatementAccesses& reduce,
                  const UOp* index) {
  constexpr int64_t kDense = 2;  // Of what it spans, it uses at least a half.
  if (index->src(0)->op != Op::kParam) return false;
  const int64_t bytes = OperandBytes(sets, reduce, index);
  if (bytes > target.l2_bytes / 4) return false;
  const LinearForm form = ToLinear(index->src(1));
  if (StepsOf(reduce, form).distance == 0) return false;
  int64_t span = 1;
  for (const UOp* r : OwnRanges(sets, reduce, index)) {
    span += std::abs(form.CoefficientOf(r)) * (r->range_size() - 1);
  }
  return span * ByteSize(index->dtype.scalar) <= kDense * bytes;
}

bool ReadsInPlace(const Target& target, const StatementAccesses& reduce, const UOp* index,
                  int64_t lanes, int64_t row_tiles) {
  if (index->src(0)->op != Op::kParam) return false;
  const Steps steps = StepsOf(reduce, ToLinear(index->src(1)));
  if (steps.distance == 0) return false;
  const int64_t element = ByteSize(index->dtype.scalar);
  const int64_t panel = steps.count * lanes * element;
  // Rows whose distance is a multiple of a way's size share their place; each way has one for them.
  const auto stays = [&](int64_t cache, int64_t way) {
    const int64_t places = way / std::gcd(steps.distance * element, way);
    return steps.count <= places * (cache / way / 2);
  };
  const int64_t l1 = target.l1_bytes;
  if (panel <= l1 / kFirstCacheShare && stays(l1, kFirstCacheWay)) return true;
  const int64_t l2 = target.l2_bytes;
  return row_tiles <= kMostRowTiles && panel <= l2 / kSecondCacheShare &&
         stays(l2, l2 / kSecondCacheWays);
}

}  // namespace quern
