#include "rewrite/range_sets.h"

#include <algorithm>

#include "rewrite/graph.h"

namespace quern {

void SortByAxis(std::vector<const UOp*>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const UOp* a, const UOp* b) {
    if (a->range_axis() != b->range_axis()) return a->range_axis() < b->range_axis();
    return a->hash < b->hash;
  });
}

RangeSets::RangeSets(const UOp* root) : free_(root->id + 1, 0) {
  const std::vector<const UOp*> order = Toposort(root);
  for (const UOp* u : order) {
    if (u->op == Op::kRange) ranges_.push_back(u);
  }
  SortByAxis(ranges_);
  QUERN_CHECK(ranges_.size() <= kMaxRanges);
  for (const UOp* u : order) {
    uint64_t set = u->op == Op::kRange ? Bit(u) : 0;
    for (const UOp* s : u->src()) set |= free_[s->id];
    if (u->op == Op::kReduce) {
      for (const UOp* r : u->src().subspan(1)) set &= ~free_[r->id];
    } else if (u->op == Op::kLoop) {
      set &= ~free_[u->src(0)->id];
    }
    free_[u->id] = set;
  }
}

uint64_t RangeSets::Bit(const UOp* range) const {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i] == range) return uint64_t{1} << i;
  }
  return 0;
}

std::vector<const UOp*> RangeSets::Members(uint64_t set) const {
  std::vector<const UOp*> members;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if ((set >> i) & 1) members.push_back(ranges_[i]);
  }
  return members;
}

}  // namespace quern
