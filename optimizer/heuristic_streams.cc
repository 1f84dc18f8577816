#include <algorithm>
#include <cstdlib>

#include "optimizer/heuristic_steps.h"
#include "rewrite/linear.h"

namespace quern {

namespace {

// Whether threads that divide `columns` would add to sums close to each other's, pass after pass:
// each has a piece of several rows of sums, and either pieces end within a line of the cache, or
// they are so short that what a core fetches ahead of its own is mostly its neighbour's. Two cores
// then wait for the same lines in turn.
bool ThreadsMeet(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                 const StatementAccesses* store, const UOp* columns, const UOp* lanes) {
  constexpr int64_t kLineBytes = 64;
  constexpr int64_t kLeastPiece = 4096;  // bytes; the hardware fetches ahead within a page
  if (store == nullptr || !PaysThreads(s)) return false;
  const LinearForm form = ToLinear(store->node->src(0)->src(1));
  const int64_t element = ByteSize(store->node->src(1)->dtype.scalar);
  const int64_t step = std::abs(form.CoefficientOf(columns)) * element;
  const int64_t piece = (columns->range_size() + s.target().cores - 1) / s.target().cores * step;
  bool several = false;
  bool whole_lines = piece % kLineBytes == 0;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (!IsRegisterAxis(r->range_type()) || r == lanes || r->range_size() < 2) continue;
    const int64_t distance = std::abs(form.CoefficientOf(r)) * element;
    if (distance < step) continue;
    several = true;
    whole_lines &= distance % kLineBytes == 0;
  }
  return several && (!whole_lines || piece < kLeastPiece);
}

}  // namespace

// A reduction with lanes over outputs that reads one vector of each row jumps through memory from
// row to row. Reading rows front to back keeps the hardware's prefetching busy instead. Each pass
// over a row loads and stores all sums, which few sums for what is read can afford.
void StreamRows(Scheduler& s, Decisions&) {
  constexpr int64_t kLeastRows = 64;
  constexpr int64_t kMostSums = 8;    // vectors
  constexpr int64_t kMostStride = 2;  // of sums, in the output: pairs are interleaved in registers
  const RangeSets sets(s.kernel());
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  const StatementAccesses* store = FindStore(all);
  for (const StatementAccesses& reduce : all) {
    if (reduce.node->op != Op::kReduce || reduce.node->source_count != 2) continue;
    const UOp* rows = reduce.node->src(1);
    if (rows->range_type() != AxisType::kReduce || rows->range_size() < kLeastRows) continue;
    if (IsProduct(sets, reduce)) continue;
    int64_t outputs = 1;
    int64_t sums = 1;
    const UOp* lanes = nullptr;
    const UOp* columns = nullptr;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      outputs *= r->range_size();
      if (IsRegisterAxis(r->range_type())) sums *= r->range_size();
      if (r->range_type() == AxisType::kLoop) columns = r;  // the innermost one
      if (r->range_type() == AxisType::kUpcast && r->range_size() >= VectorLanes(s, reduce))
        lanes = r;
    }
    const int64_t tile_bytes = outputs * ByteSize(reduce.node->dtype.scalar);
    if (lanes == nullptr || columns == nullptr || tile_bytes > s.target().l2_bytes / 2) continue;
    if (sums > kMostSums * VectorLanes(s, reduce)) continue;
    const int64_t stride =
        store == nullptr ? 1 : ToLinear(store->node->src(0)->src(1)).CoefficientOf(lanes);
    if (std::abs(stride) > kMostStride) continue;
    if (columns->range_axis() > rows->range_axis()) continue;
    bool jumps = false;
    for (const UOp* load : reduce.loads) {
      const StatementAccesses one = {reduce.node, {load}, nullptr};
      jumps |= PatternAlong(one, lanes).contiguous > 0 && PatternAlong(one, rows).strided > 0 &&
               PatternAlong(one, columns).strided > 0;
    }
    if (!jumps || ThreadsMeet(s, sets, reduce, store, columns, lanes)) continue;
    const int columns_axis = AxisNumber(s, columns);
    const int rows_axis = AxisNumber(s, rows);
    const int64_t steps = Dividing(rows->range_size(), {8, 4, 2});
    if (steps != 0) Try(s, ActionKind::kUnroll, ReduceNumber(s, rows), steps);
    Try(s, ActionKind::kSwap, columns_axis, rows_axis);
    return;
  }
}

}  // namespace quern
