#include "codegen/guard_loops.h"

#include <algorithm>

#include "rewrite/build.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

class Guarder {
 public:
  Guarder(UOpGraph& graph, const UOp* sink, const SimplifyOptions& options)
      : g_(graph), options_(options), sets_(sink) {}

  // Recursion is as deep as the loop nest. `open` are the loops around, `known` what holds there.
  const UOp* Statement(const UOp* u, uint64_t open, const std::vector<const UOp*>& known) {
    if (u->op == Op::kStore || u->op == Op::kGuard) return u;
    std::vector<const UOp*> sources(u->src().begin(), u->src().end());
    std::vector<const UOp*> holds = known;
    size_t first = 0;
    std::vector<const UOp*> fresh;
    if (u->op == Op::kLoop) {
      first = 1;
      open |= sets_.Bit(u->src(0));
      if (IsReduceAxis(u->src(0)->range_type())) fresh = GuardsOf(u, open, known);
      holds.insert(holds.end(), fresh.begin(), fresh.end());
    }
    for (size_t i = first; i < sources.size(); ++i) {
      sources[i] = Statement(sources[i], open, holds);
    }
    for (size_t i = fresh.size(); i-- > 0;) {
      sources.insert(sources.begin() + 1, g_.Make(Op::kGuard, kVoidType, {fresh[i]}));
    }
    return WithSources(g_, u, sources);
  }

 private:
  std::vector<const UOp*> GuardsOf(const UOp* loop, uint64_t open,
                                   const std::vector<const UOp*>& known) {
    std::vector<const UOp*> guards;
    const uint64_t own = sets_.Bit(loop->src(0));
    for (const UOp* u : Toposort(loop)) {
      if (u->op != Op::kLoad || u->src(0)->source_count != 3) continue;
      for (const UOp* condition : Conjuncts(u->src(0)->src(2))) {
        const uint64_t used = sets_.Of(condition);
        if ((used & own) == 0 || (used & ~open) != 0) continue;
        if (!IsOfLoops(condition)) continue;
        if (std::count(known.begin(), known.end(), condition) != 0) continue;
        if (std::count(guards.begin(), guards.end(), condition) != 0) continue;
        if (DoesNothingWithout(loop, condition)) guards.push_back(condition);
      }
    }
    return guards;
  }

  // Nothing that was read decides: a branch on data is taken wrongly too often.
  static bool IsOfLoops(const UOp* condition) {
    for (const UOp* u : Toposort(condition)) {
      if (u->op == Op::kLoad) return false;
    }
    return true;
  }

  bool DoesNothingWithout(const UOp* loop, const UOp* condition) {
    const UOp* never = g_.Make(Op::kConst, kBoolType, {}, {0, 0});
    const UOp* body = g_.Make(Op::kBlock, kVoidType, loop->src().subspan(1));
    const UOp* rest = Simplify(g_, Substitute(g_, body, {{condition}}, {{never}}), options_);
    return rest->op == Op::kBlock && rest->source_count == 0;
  }

  UOpGraph& g_;
  const SimplifyOptions& options_;
  RangeSets sets_;
};

}  // namespace

std::vector<const UOp*> Conjuncts(const UOp* condition) { return ConjunctsLeft(condition, {}); }

std::vector<const UOp*> ConjunctsLeft(const UOp* mask, const std::vector<const UOp*>& implied) {
  std::vector<const UOp*> left;
  std::vector<const UOp*> stack = {mask};
  while (!stack.empty()) {
    const UOp* u = stack.back();
    stack.pop_back();
    if (u->op == Op::kAnd) {
      stack.insert(stack.end(), {u->src(1), u->src(0)});
      continue;
    }
    const UOp* said = u->op == Op::kBroadcast ? u->src(0) : u;
    bool holds = !implied.empty();
    for (const UOp* c : said->op == Op::kAnd ? ConjunctsLeft(said, {}) : std::vector{said}) {
      holds = holds && std::find(implied.begin(), implied.end(), c) != implied.end();
    }
    if (!holds) left.push_back(u);
  }
  return left;
}

const UOp* GuardLoops(UOpGraph& graph, const UOp* sink, const SimplifyOptions& options) {
  return Guarder(graph, sink, options).Statement(sink, 0, {});
}

}  // namespace quern
