#include "optimizer/access_pattern.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

enum class Walk : uint8_t { kFixed, kContiguous, kStrided, kGathered };

bool Uses(const UOp* u, const UOp* range) {
  for (const UOp* v : Toposort(u)) {
    if (v == range) return true;
  }
  return false;
}

Walk WalkAlong(const UOp* index, const UOp* range) {
  const LinearForm form = ToLinear(index->src(1));
  const int64_t stride = form.CoefficientOf(range);
  for (const auto& [term, coefficient] : form.terms) {
    if (term != range && Uses(term, range)) return Walk::kGathered;
  }
  if (stride == 0) return Walk::kFixed;
  return stride == 1 ? Walk::kContiguous : Walk::kStrided;
}

}  // namespace

std::vector<StatementAccesses> CollectAccesses(const UOp* kernel) {
  std::vector<StatementAccesses> all;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op != Op::kReduce && u->op != Op::kStore) continue;
    StatementAccesses& accesses = all.emplace_back();
    accesses.node = u;
    absl::flat_hash_set<const UOp*> seen;
    std::vector<const UOp*> stack = {u->op == Op::kReduce ? u->src(0) : u->src(1)};
    if (u->op == Op::kStore) accesses.store = u->src(0);
    while (!stack.empty()) {
      const UOp* v = stack.back();
      stack.pop_back();
      if (v->op == Op::kReduce || !seen.insert(v).second) continue;
      if (v->op == Op::kIndex) accesses.loads.push_back(v);
      stack.insert(stack.end(), v->src().begin(), v->src().end());
    }
    std::sort(accesses.loads.begin(), accesses.loads.end(),
              [](const UOp* a, const UOp* b) { return a->hash < b->hash; });
  }
  return all;
}

AccessPattern PatternAlong(const StatementAccesses& accesses, const UOp* range) {
  AccessPattern pattern;
  for (const UOp* load : accesses.loads) {
    switch (WalkAlong(load, range)) {
      case Walk::kFixed:
        ++pattern.fixed;
        break;
      case Walk::kContiguous:
        ++pattern.contiguous;
        break;
      case Walk::kStrided:
        ++pattern.strided;
        break;
      case Walk::kGathered:
        ++pattern.gathered;
        break;
    }
  }
  if (accesses.store != nullptr) {
    const Walk walk = WalkAlong(accesses.store, range);
    pattern.store_contiguous = walk == Walk::kContiguous;
    pattern.store_depends = walk != Walk::kFixed;
  }
  return pattern;
}

}  // namespace quern
