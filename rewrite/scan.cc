#include "rewrite/scan.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/simplify.h"

namespace quern {
namespace {

bool Uses(const UOp* u, const UOp* range) {
  const std::vector<const UOp*> order = Toposort(u);
  return std::find(order.begin(), order.end(), range) != order.end();
}

// As it is written, perhaps -inf.
bool IsIdentity(UOpGraph& g, const UOp* x, const UOp* identity) {
  if (x == identity) return true;
  return x->op == Op::kNeg && x->src(0)->IsConst() && Simplify(g, x) == identity;
}

// The output variable that a condition compares with the reduced one, and which places count.
struct Mask {
  const UOp* output = nullptr;
  int64_t flags = 0;
};

std::optional<Mask> ReadMask(const UOp* condition, const UOp* reduced, bool negated) {
  if (condition->op == Op::kNot) return ReadMask(condition->src(0), reduced, !negated);
  if (condition->op != Op::kLt && condition->op != Op::kLe) return std::nullopt;
  if (!IsIndex(condition->src(0)->dtype)) return std::nullopt;
  // The condition as `difference >= 0`.
  LinearForm difference = ToLinear(condition->src(1));
  if (!AddScaled(difference, ToLinear(condition->src(0)), -1)) return std::nullopt;
  if (condition->op == Op::kLt) --difference.constant;
  if (negated) {
    LinearForm opposite;
    if (!AddScaled(opposite, difference, -1)) return std::nullopt;
    difference = opposite;
    --difference.constant;
  }
  if (difference.terms.size() != 2) return std::nullopt;
  const bool first = difference.terms[0].first == reduced;
  const auto& [output, slope] = difference.terms[first ? 1 : 0];
  if (difference.CoefficientOf(reduced) != -slope || (slope != 1 && slope != -1)) {
    return std::nullopt;
  }
  if (output->op != Op::kRange || output->range_type() != AxisType::kLoop) return std::nullopt;
  if (output->range_size() != reduced->range_size()) return std::nullopt;
  if (difference.constant != 0 && difference.constant != -1) return std::nullopt;
  Mask mask = {output, slope == 1 ? 0 : kScanReverse};
  if (difference.constant == -1) mask.flags |= kScanExclusive;
  return mask;
}

// A masked value: what it is where the mask is true.
struct Masked {
  Mask mask;
  const UOp* value = nullptr;
};

// One comparison of a conjunction, and what is left of that (nullptr: nothing).
std::optional<Masked> TakeMask(UOpGraph& g, const UOp* condition, const UOp* reduced) {
  if (const std::optional<Mask> mask = ReadMask(condition, reduced, /*negated=*/false)) {
    return Masked{*mask, nullptr};
  }
  if (condition->op != Op::kAnd) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const UOp* other = condition->src(1 - side);
    std::optional<Masked> taken = TakeMask(g, condition->src(side), reduced);
    if (!taken.has_value()) continue;
    taken->value = taken->value == nullptr ? other : And(g, taken->value, other);
    return taken;
  }
  return std::nullopt;
}

std::optional<Masked> Unmask(UOpGraph& g, Op op, const UOp* value, const UOp* reduced) {
  if (value->op == Op::kCast) {
    // 0 and 1 are themselves in every type; the lowest and highest values are not.
    if (op != Op::kAdd && op != Op::kMul) return std::nullopt;
    std::optional<Masked> inner = Unmask(g, op, value->src(0), reduced);
    if (inner.has_value()) inner->value = Cast(g, inner->value, value->dtype);
    return inner;
  }
  // A count: false where the mask is.
  if (value->op == Op::kAnd && IsBool(value->dtype) && op == Op::kAdd) {
    return TakeMask(g, value, reduced);
  }
  if (value->op != Op::kWhere || IsIndex(value->dtype)) return std::nullopt;
  const UOp* identity = ReduceIdentity(g, op, value->dtype);
  if (IsIdentity(g, value->src(2), identity)) {
    std::optional<Masked> taken = TakeMask(g, value->src(0), reduced);
    if (!taken.has_value()) return std::nullopt;
    taken->value = taken->value == nullptr ? value->src(1)
                                           : Where(g, taken->value, value->src(1), value->src(2));
    return taken;
  }
  if (IsIdentity(g, value->src(1), identity)) {
    const std::optional<Mask> mask = ReadMask(value->src(0), reduced, /*negated=*/true);
    if (mask.has_value()) return Masked{*mask, value->src(2)};
  }
  return std::nullopt;
}

// The SCAN that a REDUCE is; nullptr if it is none.
const UOp* AsScan(UOpGraph& g, const UOp* reduce) {
  const Op op = reduce->reduce_op();
  if (!IsFloat(reduce->dtype) && !IsInteger(reduce->dtype)) return nullptr;
  for (const UOp* reduced : reduce->src().subspan(1)) {
    const std::optional<Masked> masked = Unmask(g, op, reduce->src(0), reduced);
    if (!masked.has_value() || Uses(masked->value, masked->mask.output)) continue;
    const UOp* value = Substitute(g, masked->value, {{reduced}}, {{masked->mask.output}});
    std::vector<const UOp*> others(reduce->src().begin() + 1, reduce->src().end());
    std::erase(others, reduced);
    if (!others.empty()) value = Reduce(g, op, value, others);
    return Scan(g, op, masked->mask.flags, value, {{masked->mask.output}});
  }
  return nullptr;
}

// (r0 · n1 + r1) · n2 + …
const UOp* PlaceOf(UOpGraph& g, std::span<const UOp* const> ranges) {
  const UOp* place = ranges[0];
  for (const UOp* r : ranges.subspan(1)) {
    place = Add(g, Mul(g, place, IndexConst(g, r->range_size())), r);
  }
  return place;
}

}  // namespace

const UOp* Scan(UOpGraph& g, Op op, int64_t flags, const UOp* value,
                std::span<const UOp* const> ranges) {
  QUERN_CHECK(!ranges.empty());
  std::vector<const UOp*> sources = {value};
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return g.Make(Op::kScan, value->dtype, sources, {static_cast<int64_t>(op), flags});
}

const UOp* RecognizeScans(UOpGraph& graph, const UOp* sink) {
  // From outside inwards: a sum of sums compares with a loop of its own until that is an output's.
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<const UOp*> order = Toposort(sink);
    for (size_t i = order.size(); i-- > 0 && !changed;) {
      if (order[i]->op != Op::kReduce) continue;
      const UOp* scan = AsScan(graph, order[i]);
      if (scan == nullptr) continue;
      sink = Substitute(graph, sink, {{order[i]}}, {{scan}});
      changed = true;
    }
  }
  return sink;
}

const UOp* ScansAsReductions(UOpGraph& graph, const UOp* sink) {
  int next_axis = 0;
  bool any = false;
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kRange) next_axis = std::max(next_axis, u->range_axis() + 1);
    any |= u->op == Op::kScan;
  }
  if (!any) return sink;
  absl::flat_hash_map<const UOp*, const UOp*> done;
  std::vector<const UOp*> sources;
  sink = graph.Import(sink);
  for (const UOp* u : Toposort(sink)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    if (u->op != Op::kScan) {
      done[u] = WithSources(graph, u, sources);
      continue;
    }
    const std::vector<const UOp*> ranges(sources.begin() + 1, sources.end());
    std::vector<const UOp*> own;
    for (const UOp* r : ranges) {
      const bool registers = IsRegisterAxis(r->range_type());
      own.push_back(Range(graph, r->range_size(), next_axis++,
                          registers ? AxisType::kUnroll : AxisType::kReduce));
    }
    const UOp* here = PlaceOf(graph, ranges);
    const UOp* there = PlaceOf(graph, own);
    if ((u->arg.b & kScanReverse) != 0) std::swap(here, there);
    const Op compare = (u->arg.b & kScanExclusive) != 0 ? Op::kLt : Op::kLe;
    const UOp* value = Where(graph, Binary(graph, compare, there, here),
                             Substitute(graph, sources[0], ranges, own),
                             ReduceIdentity(graph, u->reduce_op(), u->dtype));
    done[u] = Reduce(graph, u->reduce_op(), value, own);
  }
  return done.at(sink);
}

std::vector<const UOp*> SlowestFirst(const UOp* place) {
  if (place->op == Op::kRange) return {place};
  // Not by coefficients: that of an empty inner range is 0.
  QUERN_CHECK(place->op == Op::kAdd && place->src(0)->op == Op::kMul);
  std::vector<const UOp*> ranges = SlowestFirst(place->src(0)->src(0));
  for (const UOp* r : SlowestFirst(place->src(1))) ranges.push_back(r);
  return ranges;
}

bool IsScanned(const UOp* kernel, const UOp* range) {
  for (const UOp* u : Toposort(kernel)) {
    if (u->op != Op::kScan) continue;
    const std::span<const UOp* const> ranges = u->src().subspan(1);
    if (std::find(ranges.begin(), ranges.end(), range) != ranges.end()) return true;
  }
  return false;
}

}  // namespace quern
