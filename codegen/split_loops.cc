#include "codegen/split_loops.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rewrite/bounds.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// Where a guard would do, it costs a few percent of what cutting saves, and much less to compile.
constexpr int kMaxCopies = 64, kMaxGuardedCopies = 9;
constexpr int kMaxCuts = 3;  // One more piece than cuts: a border on each side of two conditions.

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// Adds the values of `range` from which on `a < b` (or `a <= b`) has one answer.
void AddCuts(const UOp* comparison, const UOp* range, const RangeSets& sets, BoundsAnalysis& bounds,
             std::vector<int64_t>& cuts) {
  LinearForm difference = ToLinear(comparison->src(0));
  if (!AddScaled(difference, ToLinear(comparison->src(1)), -1)) return;
  const int64_t slope = difference.CoefficientOf(range);
  if (slope == 0) return;
  std::erase_if(difference.terms, [&](const auto& term) { return term.first == range; });
  for (const auto& [term, coefficient] : difference.terms) {
    if (sets.Depends(term, range)) return;
  }
  Bounds rest = LinearBounds(difference, bounds);
  if (rest.min == INT64_MIN || rest.max == INT64_MAX) return;
  if (comparison->op == Op::kLe) {  // a <= b is a < b + 1.
    --rest.min;
    --rest.max;
  }
  // slope · r + rest < 0 is always true, respectively always false:
  if (slope > 0) {
    cuts.push_back(FloorDivide(-rest.max - 1, slope) + 1);
    cuts.push_back(FloorDivide(-rest.min - 1, slope) + 1);
  } else {
    cuts.push_back(FloorDivide(rest.max, -slope) + 1);
    cuts.push_back(FloorDivide(rest.min, -slope) + 1);
  }
}

// Cuts for what guards ask, too, or only for masks that are left where guards hold.
std::vector<int64_t> FindCuts(const UOp* loop, bool for_guards) {
  const UOp* range = loop->src(0);
  const RangeSets sets(loop);
  BoundsAnalysis bounds;
  std::vector<int64_t> cuts;
  const std::vector<const UOp*> order = Toposort(loop);
  absl::flat_hash_set<const UOp*> guards;
  for (const UOp* u : order) {
    if (u->op == Op::kGuard && !for_guards) guards.insert(u->src(0));
  }
  for (const UOp* u : order) {
    if (guards.contains(u)) continue;
    const bool compares = (u->op == Op::kLt || u->op == Op::kLe) && IsIndex(u->src(0)->dtype);
    if (compares && sets.Depends(u, range)) AddCuts(u, range, sets, bounds, cuts);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::erase_if(cuts, [&](int64_t c) { return c <= 0 || c >= range->range_size(); });
  if (cuts.size() > kMaxCuts) {
    // Keep the longest interior: the first and the last cuts bound it.
    std::vector<int64_t> ends = {0};
    ends.insert(ends.end(), cuts.begin(), cuts.end());
    ends.push_back(range->range_size());
    size_t longest = 0;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      if (ends[i + 1] - ends[i] > ends[longest + 1] - ends[longest]) longest = i;
    }
    cuts.clear();
    if (longest > 0) cuts.push_back(ends[longest]);
    if (longest + 2 < ends.size()) cuts.push_back(ends[longest + 1]);
  }
  return cuts;
}

// Recursion is as deep as the loop nest. `copies` is how often the surrounding loops were copied.
void SplitStatement(UOpGraph& g, const UOp* statement, int copies, const SimplifyOptions& options,
                    std::vector<const UOp*>& result) {
  if (statement->op == Op::kGuard && statement->src(0)->IsConst()) return;  // There is no question.
  if (statement->op == Op::kStore || statement->op == Op::kGuard) {
    result.push_back(statement);
    return;
  }
  if (statement->op == Op::kBlock) {
    for (const UOp* s : statement->src()) SplitStatement(g, s, copies, options, result);
    return;
  }
  if (statement->op != Op::kLoop) {
    std::vector<const UOp*> inner;
    for (const UOp* s : statement->src()) SplitStatement(g, s, copies, options, inner);
    result.push_back(g.Make(statement->op, kVoidType, inner, statement->arg));
    return;
  }
  const UOp* range = statement->src(0);
  std::vector<int64_t> ends;
  if (range->range_type() != AxisType::kThread) {
    ends = FindCuts(statement, /*for_guards=*/true);
    if (copies * static_cast<int>(ends.size() + 1) > kMaxGuardedCopies) {
      ends = FindCuts(statement, /*for_guards=*/false);
    }
  }
  if (copies * static_cast<int>(ends.size() + 1) > kMaxCopies) ends.clear();
  const int pieces = static_cast<int>(ends.size()) + 1;
  ends.push_back(range->range_size());
  int64_t begin = 0;
  for (int64_t end : ends) {
    const UOp* piece = statement;
    if (pieces > 1) {
      const UOp* value = IndexConst(g, begin);
      const UOp* shorter = nullptr;
      if (end - begin > 1) {
        shorter = Range(g, end - begin, range->range_axis(), range->range_type());
        value = begin == 0 ? shorter : Add(g, shorter, value);
      }
      std::vector<const UOp*> body;
      for (const UOp* s : statement->src().subspan(1)) {
        if (shorter == nullptr && s->op == Op::kGuard) continue;  // There is no loop to go on with.
        body.push_back(Simplify(g, Substitute(g, s, {{range}}, {{value}}), options));
      }
      if (shorter != nullptr) body.insert(body.begin(), shorter);
      piece = g.Make(shorter != nullptr ? Op::kLoop : Op::kBlock, kVoidType, body);
    }
    begin = end;
    if (piece->op == Op::kBlock) {  // one iteration
      SplitStatement(g, piece, copies * pieces, options, result);
      continue;
    }
    std::vector<const UOp*> inner = {piece->src(0)};
    for (const UOp* s : piece->src().subspan(1)) {
      SplitStatement(g, s, copies * pieces, options, inner);
    }
    const bool acts = std::any_of(inner.begin() + 1, inner.end(),
                                  [](const UOp* s) { return s->op != Op::kGuard; });
    if (acts) result.push_back(g.Make(Op::kLoop, kVoidType, inner));
  }
}

}  // namespace

const UOp* SplitLoops(UOpGraph& graph, const UOp* sink, const SimplifyOptions& options) {
  std::vector<const UOp*> result;
  SplitStatement(graph, sink, 1, options, result);
  QUERN_CHECK(result.size() == 1);
  return result[0];
}

}  // namespace quern
