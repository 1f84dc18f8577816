#include "codegen/prefetch_panels.h"

#include <algorithm>
#include <vector>

#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

constexpr int64_t kLine = 64;  // bytes

// The loops around a load that matter here.
struct Walk {
  const UOp* panel = nullptr;  // each iteration reads another panel
  Ranges again;                // loops inside it, outermost first: the steps that read one panel
  int64_t steps = 1;           // all together
  int64_t passes = 1;          // how often they read it
};

// `loops` are those around a load at `form`, outermost first.
Walk WalkOf(const Ranges& loops, const LinearForm& form) {
  Walk walk;
  for (const UOp* r : loops) {
    const bool follows = form.CoefficientOf(r) > 0;
    if (!IsReduceAxis(r->range_type()) && follows) {
      walk = {};
      walk.panel = r;
      continue;
    }
    if (!follows) walk.passes *= r->range_size();
    walk.again.push_back(r);
    walk.steps *= r->range_size();
  }
  return walk;
}

class Prefetcher {
 public:
  Prefetcher(UOpGraph& graph, const Target& target) : g_(graph), target_(target) {}

  // Recursion is as deep as the loop nest.
  const UOp* Statement(const UOp* u) {
    const bool is_loop = u->op == Op::kLoop;
    if (is_loop) loops_.push_back(u->src(0));
    Ranges sources;
    bool innermost = is_loop;
    for (const UOp* s : u->src()) {
      if (s->op == Op::kLoop) innermost = false;
      const bool inner = GetOpInfo(s->op).statement && s->op != Op::kStore;
      sources.push_back(inner ? Statement(s) : s);
    }
    const UOp* result = WithSources(g_, u, sources);
    if (innermost) result = FetchIn(result);
    if (is_loop) loops_.pop_back();
    return result;
  }

 private:
  // Marks the loads of an innermost loop.
  const UOp* FetchIn(const UOp* loop) {
    Ranges from;
    Ranges to;
    Ranges fetched;  // buffers
    for (const UOp* u : Toposort(loop)) {
      if (u->op != Op::kLoad || u->dtype.lanes == 1 || u->source_count != 1) continue;
      const Access access = ReadAccess(u->src(0));
      if (access.kind != Access::Kind::kStrided || access.stride != 1) continue;
      const UOp* buffer = access.buffer;
      if (buffer->op != Op::kParam || buffer->slot() < kFirstPackedSlot) continue;
      if (access.base == nullptr || std::count(fetched.begin(), fetched.end(), buffer) != 0) continue;
      const int64_t lines = LinesOf(buffer, ToLinear(access.base));
      if (lines == 0) continue;
      fetched.push_back(buffer);
      Mark(loop, buffer, ToLinear(access.base), lines, from, to);
    }
    return from.empty() ? loop : Substitute(g_, loop, from, to);
  }

  // How many lines each step is to fetch of the next panel; 0 if that does not pay.
  int64_t LinesOf(const UOp* buffer, const LinearForm& form) const {
    const int64_t element = ByteSize(buffer->dtype.scalar);
    if (buffer->buffer_size() * element <= target_.l2_bytes) return 0;
    const Walk walk = WalkOf(loops_, form);
    if (walk.panel == nullptr || walk.passes < 2) return 0;
    const int64_t panel = form.CoefficientOf(walk.panel) * element;
    if (2 * panel > target_.l2_bytes || panel < target_.l1_bytes) return 0;
    return (panel / walk.steps + kLine - 1) / kLine;
  }

  // Gives the first `lines` loads of `buffer` in `loop` a place to fetch.
  void Mark(const UOp* loop, const UOp* buffer, const LinearForm& form, int64_t lines, Ranges& from,
            Ranges& to) {
    const Walk walk = WalkOf(loops_, form);
    const int64_t panel = form.CoefficientOf(walk.panel);
    const int64_t ahead = (panel + walk.steps - 1) / walk.steps;  // elements, in each step
    LinearForm place;
    for (const auto& [term, coefficient] : form.terms) {
      const bool inside = std::count(walk.again.begin(), walk.again.end(), term) != 0;
      if (!inside) place.terms.emplace_back(term, coefficient);
    }
    place.constant = panel;
    int64_t steps = ahead;
    for (size_t i = walk.again.size(); i-- > 0;) {
      place.terms.emplace_back(walk.again[i], steps);
      steps *= walk.again[i]->range_size();
    }
    const int64_t line = kLine / ByteSize(buffer->dtype.scalar);
    for (const UOp* u : Toposort(loop)) {
      if (lines == 0) return;
      if (u->op != Op::kLoad || u->dtype.lanes == 1 || u->src(0)->src(0) != buffer) continue;
      from.push_back(u);
      to.push_back(g_.Make(Op::kLoad, u->dtype, {u->src(0), FromLinear(g_, place)}, u->arg));
      place.constant += line;
      --lines;
    }
  }

  UOpGraph& g_;
  const Target& target_;
  Ranges loops_;
};

}  // namespace

const UOp* PrefetchPanels(UOpGraph& graph, const UOp* sink, const Target& target) {
  return Prefetcher(graph, target).Statement(sink);
}

}  // namespace quern
