#include "rewrite/merge_loops.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"
#include "rewrite/simplify.h"

namespace quern {
namespace {

// How the nodes of a kernel use its loops.
class LoopUses {
 public:
  explicit LoopUses(const UOp* sink) : order_(Toposort(sink)), sets_(sink) {
    for (const UOp* u : order_) {
      if (u->op == Op::kIndex) {
        forms_.push_back(ToLinear(u->src(1)));
      } else if (u->op == Op::kReduce) {
        for (const UOp* r : u->src().subspan(1)) closers_[r].push_back(u);
        if (IsIndex(u->dtype)) alone_ |= sets_.Of(u->src(0));
      } else if (u->op == Op::kScan) {
        for (const UOp* r : u->src().subspan(1)) alone_ |= sets_.Bit(r);
      } else if (u->op == Op::kStore) {
        stores_.push_back(u);
      } else if (!IsIndex(u->dtype)) {
        // What compares or converts an index needs each loop's own value.
        for (const UOp* s : u->src()) {
          if (IsIndex(s->dtype)) alone_ |= sets_.Of(s);
        }
      }
    }
  }

  // Two loops, `inner` directly inside `outer`, that may be merged; nulls if there are none.
  std::pair<const UOp*, const UOp*> Find() const {
    const std::vector<const UOp*>& ranges = sets_.ranges();
    for (size_t i = 0; i + 1 < ranges.size(); ++i) {
      for (size_t j = i + 1; j < ranges.size(); ++j) {
        if (!SameScope(ranges[i], ranges[j])) continue;
        if (WalkAsOne(ranges[i], ranges[j])) return {ranges[i], ranges[j]};
        break;  // Only the next loop of the same statements.
      }
    }
    return {nullptr, nullptr};
  }

 private:
  bool SameScope(const UOp* a, const UOp* b) const {
    if (a->range_type() != b->range_type()) return false;
    const auto of_a = closers_.find(a), of_b = closers_.find(b);
    if ((of_a == closers_.end()) != (of_b == closers_.end())) return false;
    if (of_a != closers_.end()) return of_a->second == of_b->second;
    if (a->range_type() != AxisType::kLoop) return false;
    return std::all_of(stores_.begin(), stores_.end(), [&](const UOp* store) {
      return sets_.Depends(store, a) == sets_.Depends(store, b);
    });
  }

  bool WalkAsOne(const UOp* outer, const UOp* inner) const {
    const uint64_t both = sets_.Bit(outer) | sets_.Bit(inner);
    if ((alone_ & both) != 0) return false;
    return std::all_of(forms_.begin(), forms_.end(), [&](const LinearForm& form) {
      for (const auto& [term, coefficient] : form.terms) {
        if (term != outer && term != inner && (sets_.Of(term) & both) != 0) return false;
      }
      if (outer->range_size() == 1 || inner->range_size() == 1) return true;
      return form.CoefficientOf(outer) == form.CoefficientOf(inner) * inner->range_size();
    });
  }

  std::vector<const UOp*> order_;
  RangeSets sets_;
  uint64_t alone_ = 0;
  std::vector<LinearForm> forms_;
  std::vector<const UOp*> stores_;
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> closers_;
};

// The merged loop stands in for the inner one. INDEX nodes get shorter offsets.
const UOp* Merge(UOpGraph& g, const UOp* sink, const UOp* outer, const UOp* inner) {
  const UOp* merged =
      Range(g, outer->range_size() * inner->range_size(), inner->range_axis(), inner->range_type());
  const RangeSets sets(sink);
  const uint64_t both = sets.Bit(outer) | sets.Bit(inner);
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(sink)) {
    if (u == inner) {
      done[u] = merged;
      continue;
    }
    sources.clear();
    for (const UOp* s : u->src()) {
      if (u->op != Op::kReduce || s != outer) sources.push_back(done.at(s));
    }
    // Other offsets keep their spelling, by which gates know them.
    if (u->op == Op::kIndex && (sets.Of(u->src(1)) & both) != 0) {
      LinearForm form = ToLinear(u->src(1));
      const int64_t step = form.CoefficientOf(inner->range_size() == 1 ? outer : inner);
      std::erase_if(form.terms,
                    [&](const auto& term) { return term.first == outer || term.first == inner; });
      if (step != 0) form.terms.emplace_back(merged, step);
      sources[1] = FromLinear(g, ToLinear(FromLinear(g, form)));  // in the normal order
    }
    done[u] = u->op == Op::kReduce ? g.Make(Op::kReduce, u->dtype, sources, u->arg)
                                   : WithSources(g, u, sources);
  }
  return done.at(sink);
}

// Loops over outputs that run once vanish, also where a gate looks at them.
const UOp* DropSingleLoops(UOpGraph& g, const UOp* sink) {
  std::vector<const UOp*> single;
  for (const UOp* u : Toposort(sink)) {
    const bool once =
        u->op == Op::kRange && u->range_type() == AxisType::kLoop && u->range_size() == 1;
    if (once) single.push_back(u);
  }
  if (single.empty()) return sink;
  const std::vector<const UOp*> zeros(single.size(), IndexConst(g, 0));
  return Simplify(g, Substitute(g, sink, single, zeros));
}

}  // namespace

const UOp* MergeLoops(UOpGraph& graph, const UOp* sink) {
  if (sink->op != Op::kSink) return sink;
  sink = DropSingleLoops(graph, sink);
  while (true) {
    const auto [outer, inner] = LoopUses(sink).Find();
    if (outer == nullptr) return sink;
    sink = Merge(graph, sink, outer, inner);
  }
}

}  // namespace quern
