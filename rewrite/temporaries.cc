#include "rewrite/temporaries.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "rewrite/graph.h"
#include "rewrite/linear.h"
#include "rewrite/prove_access.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// An access without the ranges that were found to be used alike so far.
struct Remainder {
  const UOp* gate = nullptr;
  LinearForm form;
};

bool OccursOnce(const LinearForm& form, const UOp* range) {
  for (const auto& [term, coefficient] : form.terms) {
    if (term == range) continue;
    const std::vector<const UOp*> below = Toposort(term);
    if (std::find(below.begin(), below.end(), range) != below.end()) return false;
  }
  return true;
}

// The same multiple of `range` in all offsets, or 0.
int64_t CommonMultiple(const std::vector<Remainder>& accesses, const UOp* range) {
  const int64_t multiple = accesses[0].form.CoefficientOf(range);
  for (const Remainder& a : accesses) {
    if (a.form.CoefficientOf(range) != multiple || !OccursOnce(a.form, range)) return 0;
  }
  return std::max<int64_t>(0, multiple);
}

// Takes `range` out of the offsets if what is left of them is smaller than its multiple.
bool TakeOut(std::vector<Remainder>& accesses, const UOp* range, int64_t multiple) {
  std::vector<Remainder> rest = accesses;
  for (Remainder& a : rest) {
    std::erase_if(a.form.terms, [&](const auto& term) { return term.first == range; });
    const std::optional<Bounds> bounds = BoundsUnderGate(a.form, a.gate);
    if (bounds.has_value() && !bounds->Within(0, multiple - 1)) return false;
  }
  accesses = std::move(rest);
  return true;
}

}  // namespace

std::vector<Temporary> FindTemporaries(const UOp* part) {
  std::vector<Temporary> found;
  const auto of = [&](const UOp* buffer) -> Temporary& {
    for (Temporary& t : found) {
      if (t.buffer == buffer) return t;
    }
    found.emplace_back().buffer = buffer;
    return found.back();
  };
  for (const UOp* u : Toposort(part)) {
    if (u->op == Op::kIndex && u->src(0)->op == Op::kScratch) {
      of(u->src(0)).accesses.push_back(u);
    } else if (u->op == Op::kStore && u->src(0)->src(0)->op == Op::kScratch) {
      of(u->src(0)->src(0)).store = u;
    }
  }
  std::sort(found.begin(), found.end(), [](const Temporary& a, const Temporary& b) {
    return a.buffer->slot() < b.buffer->slot();
  });
  return found;
}

bool HasTemporaries(const UOp* part) { return !FindTemporaries(part).empty(); }

std::vector<const UOp*> RangesUsedAlike(std::span<const UOp* const> accesses) {
  std::vector<const UOp*> alike;
  if (accesses.empty()) return alike;
  std::vector<Remainder> rest;
  for (const UOp* index : accesses) {
    rest.push_back({index->source_count == 3 ? index->src(2) : nullptr, ToLinear(index->src(1))});
  }
  std::vector<std::pair<int64_t, const UOp*>> candidates;
  for (const auto& [term, coefficient] : rest[0].form.terms) {
    if (term->op != Op::kRange) continue;
    const int64_t multiple = CommonMultiple(rest, term);
    if (multiple > 0) candidates.emplace_back(multiple, term);
  }
  // The largest first: what is left gets smaller. Ranges that run once may stand anywhere.
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    if (a.second->range_size() != b.second->range_size()) {
      return a.second->range_size() > b.second->range_size();
    }
    return a.second->range_axis() < b.second->range_axis();
  });
  for (const auto& [multiple, range] : candidates) {
    if (TakeOut(rest, range, multiple)) alike.push_back(range);
  }
  SortByAxis(alike);
  return alike;
}

std::vector<const UOp*> SharedRanges(const UOp* part) {
  const std::vector<Temporary> temporaries = FindTemporaries(part);
  if (temporaries.empty()) return {};
  const RangeSets sets(part);
  uint64_t shared = ~uint64_t{0};
  for (const UOp* u : Toposort(part)) {
    if (u->op == Op::kStore) shared &= sets.Of(u);
    if (u->op != Op::kReduce) continue;
    for (const UOp* r : u->src().subspan(1)) shared &= ~sets.Bit(r);
  }
  for (const Temporary& t : temporaries) {
    uint64_t alike = 0;
    for (const UOp* r : RangesUsedAlike(t.accesses)) alike |= sets.Bit(r);
    shared &= alike;
  }
  return sets.Members(shared);
}

}  // namespace quern
