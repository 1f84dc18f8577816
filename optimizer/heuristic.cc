#include "optimizer/heuristic.h"

#include <algorithm>
#include <array>

#include "codegen/matrix_instructions.h"
#include "codegen/stream_stores.h"
#include "optimizer/best_first.h"
#include "optimizer/cpu_traits.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/window_tile.h"
#include "rewrite/temporaries.h"

namespace quern {

void UseMatrixInstructions(Scheduler& s, Decisions&) {
  if (TileMatrixInstructions(s)) return;
  // VDPBF16PS runs at half the speed of f32 products on Intel's cores and at twice on AMD's: see
  // docs/decisions.md. The search may still choose it.
  const bool fast_bf16 = TraitsOf(s.target()).fast_bf16;
  for (const UOp* u : Toposort(s.kernel())) {
    if (u->op == Op::kLoad && u->dtype.scalar == ScalarType::kBF16 && !fast_bf16) return;
  }
  // A matrix times a vector is bound by memory, which lanes along the reduced axis read best.
  const auto has_product = [](const Scheduler& trial) {
    const RangeSets sets(trial.kernel());
    for (const StatementAccesses& reduce : CollectAccesses(trial.kernel())) {
      if (IsProduct(sets, reduce)) return true;
    }
    return false;
  };
  const auto axes = static_cast<int>(s.reduce_axes().size());
  for (int i = 0; i < axes; ++i) {
    Scheduler trial = s;
    if (!Try(trial, ActionKind::kTensorCore, i, 0)) continue;
    if (has_product(trial)) s = std::move(trial);
    return;
  }
  // An axis that whole groups do not fill is padded if it is long.
  constexpr int64_t kLeastPadded = 32;
  for (int i = 0; i < axes; ++i) {
    const int axis = s.reduce_axes()[i];
    if (s.axes()[axis].size < kLeastPadded) continue;
    for (int64_t group : {2, 4}) {
      Scheduler trial = s;  // Padding alone would be a loss.
      if (!Try(trial, ActionKind::kPadTo, axis, group)) continue;
      if (!Try(trial, ActionKind::kTensorCore, i, 0)) continue;
      if (has_product(trial)) s = std::move(trial);
      return;
    }
  }
}

namespace {

// Whether a reduction adds what it loads, as it is, from far more than caches hold.
bool AddsFromMemory(const Scheduler& s, const UOp* reduce) {
  const UOp* load = reduce->src(0);
  if (reduce->reduce_op() != Op::kAdd || load->op != Op::kLoad) return false;
  const UOp* buffer = load->src(0)->src(0);
  return buffer->buffer_size() * ByteSize(buffer->dtype.scalar) >= StreamBytes(s.target());
}

int64_t RegisterBytes(const Target& target) {
  return int64_t{target.vector_registers} * target.vector_bytes;
}

// Rows of reductions that have lanes along the reduced axis, all reduced over the same loops.
struct RowReductions {
  uint64_t rows = 0;        // the loops around them; 0: there are none of the kind
  bool read_again = false;  // for another reduction, or to be written
  std::vector<const UOp*> reductions;
};

RowReductions FindRowReductions(const RangeSets& sets, const UOp* kernel) {
  RowReductions found;
  uint64_t stored = 0;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op == Op::kStore) stored |= sets.Of(u);
    if (u->op != Op::kReduce) continue;
    bool lanes = false;
    for (const UOp* r : u->src().subspan(1)) lanes |= r->range_type() == AxisType::kUnroll;
    if (!lanes || (found.rows != 0 && found.rows != sets.Of(u))) return {};
    found.rows = sets.Of(u);
    found.reductions.push_back(u);
  }
  found.read_again = found.reductions.size() > 1 || found.rows != stored;
  return found;
}

// What is left as loops of a row: over what is reduced, and over what is written of it alone.
struct RowLoops {
  std::vector<const UOp*> loops;
  int64_t bytes = 0;  // in registers, of the longest reduction or store
};

RowLoops FindRowLoops(const RangeSets& sets, const UOp* kernel, const RowReductions& rows) {
  RowLoops found;
  int element_bytes = 4;  // Narrower numbers are widened.
  for (const UOp* u : Toposort(kernel)) {
    if (u->op == Op::kLoad) element_bytes = std::max(element_bytes, ByteSize(u->dtype.scalar));
  }
  const auto add = [&](uint64_t own) {
    int64_t bytes = element_bytes;
    for (const UOp* r : sets.Members(own)) {
      bytes *= r->range_size();
      if (!IsRegisterAxis(r->range_type())) found.loops.push_back(r);
    }
    found.bytes = std::max(found.bytes, bytes);
  };
  for (const UOp* u : rows.reductions) {
    uint64_t own = 0;
    for (const UOp* r : u->src().subspan(1)) own |= sets.Bit(r);
    add(own);
  }
  for (const UOp* store : kernel->src()) add(sets.Of(store) & ~rows.rows);
  return found;
}

}  // namespace

// A row that fits the registers costs less as copies than as loops: its values stay there from the
// first reading to the last.
void TakeWholeRows(Scheduler& s, Decisions& decisions) {
  const RangeSets sets(s.kernel());
  const RowReductions rows = FindRowReductions(sets, s.kernel());
  if (!rows.read_again || rows.rows == 0) return;
  const RowLoops row = FindRowLoops(sets, s.kernel(), rows);
  if (row.loops.empty() || 2 * row.bytes > RegisterBytes(s.target())) return;
  if (!decisions.Confirm("whole-rows", true)) return;
  Scheduler trial = s;
  // From the last one on: numbers of those before it stay.
  std::vector<const UOp*> loops = row.loops;
  std::sort(loops.begin(), loops.end(),
            [](const UOp* a, const UOp* b) { return a->range_axis() > b->range_axis(); });
  for (const UOp* r : loops) {
    const bool reduces = IsReduceAxis(r->range_type());
    if (!Try(trial, reduces ? ActionKind::kUnroll : ActionKind::kUpcast,
             reduces ? ReduceNumber(s, r) : AxisNumber(s, r), 0)) {
      return;
    }
  }
  s = std::move(trial);
}

// A row that is combined and then read again waits for its lanes to be added: each step takes
// several cycles, and nothing else can be done. With two rows there is; and while one is written,
// the other is fetched. Rows that the first-level cache does not hold are better read one by one,
// and those of which the registers hold only one. From memory some cores read several rows faster
// than one, and then eight of what is only added; others are slower.
void TakeSeveralRows(Scheduler& s, Decisions& decisions) {
  constexpr int kLeastRegisters = 32;  // two rows of up to four vectors, and what exp needs
  constexpr int64_t kNearCaches = 2;
  if (s.target().vector_registers < kLeastRegisters) return;
  const RangeSets sets(s.kernel());
  const RowReductions rows = FindRowReductions(sets, s.kernel());
  if (rows.rows == 0) return;
  const bool near = BufferBytes(s.kernel()) <= kNearCaches * s.target().l2_bytes;
  const bool beside = near || TraitsOf(s.target()).rows_beside_each_other;
  int64_t bytes = BufferBytes(s.kernel());  // of a row
  const std::vector<const UOp*> loops = sets.Members(rows.rows);
  for (const UOp* r : loops) {
    if (IsRegisterAxis(r->range_type()) || r->range_size() == 0) return;
    bytes /= r->range_size();
  }
  std::vector<int64_t> together;
  if (rows.read_again) {
    if (bytes <= s.target().l1_bytes) together = {2, 4, 1};
  } else if (AddsFromMemory(s, rows.reductions[0])) {
    together = {8, 4, 1};
  }
  if (!beside && !together.empty())
    std::rotate(together.begin(), together.end() - 1, together.end());
  const RowLoops row = FindRowLoops(sets, s.kernel(), rows);
  const bool whole = row.loops.empty();
  if (whole && 4 * row.bytes > RegisterBytes(s.target())) return;
  constexpr int64_t kLeastGroups = 16;  // With fewer, padding adds too much.
  const UOp* last = loops.back();
  const int64_t size = last->range_size();
  std::erase_if(together, [&](int64_t n) { return size % n != 0 && size < kLeastGroups * n; });
  if (last->range_type() != AxisType::kLoop || together.empty()) return;
  const int64_t chosen = decisions.Pick("rows-together", together);
  if (chosen > 1) PadAndApply(s, ActionKind::kUpcast, last, chosen);
}

// Where a row is reduced and then written, several steps of the writing in one pass of its loop;
// for a search, which found that steps that leave a rest help (docs/decisions.md).
void TakeStoresTogether(Scheduler& s, Decisions& decisions) {
  const std::vector<int64_t> ways = {1, 2, 4, 3, 5};
  const RangeSets sets(s.kernel());
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  const StatementAccesses* store = FindStore(all);
  if (store == nullptr || all.size() < 2 || !HasRegisterAxis(sets, store->node)) return;
  uint64_t reduced = 0;
  for (const StatementAccesses& a : all) {
    if (a.node->op == Op::kReduce) reduced |= sets.Of(a.node);
  }
  const UOp* own = nullptr;  // the innermost loop around the store alone
  for (const UOp* r : sets.Members(sets.Of(store->node) & ~reduced)) {
    if (r->range_type() == AxisType::kLoop && r->range_size() >= 2 * ways.back()) own = r;
  }
  if (own == nullptr) return;
  const int64_t steps = decisions.Pick("store-steps", ways);
  if (steps == 1) return;
  PadAndApply(s, ActionKind::kUpcast, own, steps);
}

// Small reduced axes, such as the window of a depthwise convolution, cost more as loops than as
// copies. From the innermost outward, while the body of the loop that is left stays short. A
// product whose tile keeps the multipliers busy by itself gains nothing.
void UnrollSmallReductions(Scheduler& s, Decisions& decisions) {
  constexpr int64_t kSmall = 4;
  constexpr int64_t kMostVectors = 128;
  constexpr int64_t kLeastSums = 8;
  constexpr int64_t kLeastInTurn = 7;  // vectors; with fewer, its loop costs more than it saves
  int64_t elements = 1;
  for (const Axis& a : s.axes()) {
    if (IsRegisterAxis(a.type)) elements *= a.size;
  }
  const RangeSets sets(s.kernel());
  const UOp* in_turn = nullptr;
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce) continue;
    if (IsProduct(sets, reduce) && elements * 4 >= kLeastSums * s.target().vector_bytes) return;
    const bool wide = elements > kLeastInTurn * VectorLanes(s, reduce);
    if (wide && TraitsOf(s.target()).window_rows_in_turn) in_turn = WindowRowsAxis(sets, reduce);
  }
  const int64_t most = kMostVectors * s.target().vector_bytes / 4;
  for (size_t i = s.reduce_axes().size(); i-- > 0;) {
    const Axis& axis = s.axes()[s.reduce_axes()[i]];
    if (axis.type != AxisType::kReduce || axis.size < 2) continue;
    const int64_t size = axis.size;
    if (size > kSmall || elements * size > most) return;
    if (!decisions.Confirm("short-axis", axis.range != in_turn)) return;
    if (Try(s, ActionKind::kUnroll, static_cast<int>(i), 0)) elements *= size;
  }
}

namespace {

// Whether matrix instructions multiply and others add: then they leave no room for those of a loop.
bool AddsMatrixProducts(const Scheduler& s, const UOp* reduce) {
  const std::span<const UOp* const> axes = reduce->src().subspan(1);
  const bool summed = std::any_of(axes.begin(), axes.end(),
                                  [](const UOp* r) { return r->range_type() == AxisType::kWarp; });
  if (!summed) return false;
  const absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(reduce->src(0), s.target());
  return factors.ok() && !Accumulates(MatrixInstructions()[factors->instruction]);
}

}  // namespace

// A few steps of a register tile in one pass of its loop.
void UnrollTiles(Scheduler& s, Decisions& decisions) {
  // Of memory far away, each step reads a row of its own.
  constexpr int64_t kMostSteps = 4, kMatrixSteps = 2;
  // What a pass does besides takes as long as the arithmetic of few registers, and padding adds
  // hardly a step to a long sum.
  constexpr int64_t kLittleWork = 16, kLongSum = 32;
  const int64_t far_steps = TraitsOf(s.target()).rows_beside_each_other ? kMostSteps : 2;
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    const LanesInPlace lanes = FindLanesInPlace(s, sets, reduce);
    const bool adds = AddsMatrixProducts(s, reduce.node);
    const int64_t steps = adds ? kMatrixSteps : lanes.pays && lanes.far ? far_steps : kMostSteps;
    const UOp* innermost = nullptr;
    bool unrolled = false;
    for (const UOp* r : reduce.node->src().subspan(1)) {
      if (r->range_type() == AxisType::kReduce) innermost = r;
      unrolled |= r->range_type() == AxisType::kUnroll;
      unrolled |= r->range_type() == AxisType::kWarp && !adds;
    }
    int register_axes = 0;
    int64_t elements = 1;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      if (r->range_type() != AxisType::kUpcast) continue;
      ++register_axes;
      elements *= r->range_size();
    }
    if (innermost == nullptr || unrolled || register_axes < 2) continue;
    const int64_t size = innermost->range_size();
    if (size < 4 * steps) continue;
    const bool little = elements <= kLittleWork * VectorLanes(s, reduce);
    const bool pads = little && size % steps != 0 && size >= kLongSum * steps;
    if (pads && decisions.Confirm("padded-steps", true)) {
      const int number = ReduceNumber(s, innermost);
      if (PadTo(s, innermost, steps) && Try(s, ActionKind::kUnroll, number, steps)) return;
    }
    std::vector<int64_t> ways = {steps};
    for (int64_t other : {2, 4, 8}) {
      if (other != steps && size % other == 0 && size >= 4 * other) ways.push_back(other);
    }
    const int64_t chosen = decisions.Pick("steps", ways);
    if (Try(s, ActionKind::kUnroll, ReduceNumber(s, innermost), chosen)) return;
  }
}

namespace {

constexpr std::array<HeuristicStep, 14> kSteps = {{
    {"matrix-instructions", "use matrix instructions if the kernel is a product that fits",
     UseMatrixInstructions},
    {"grouped-reductions", "lanes along a reduced axis whose operands are contiguous there",
     GroupReductions},
    {"register-tile", "lanes and rows of outputs in registers", TileRegisters},
    {"dot-tile", "several outputs for a reduction with lanes along the reduced axis",
     TileDotProducts},
    {"whole-rows", "a short row as copies where it is combined and read again", TakeWholeRows},
    {"several-rows", "rows at once where each is combined and read again, or added from memory",
     TakeSeveralRows},
    {"store-steps", "several steps of writing a row in one pass, if told to", TakeStoresTogether},
    {"small-reductions", "unroll short reduced axes", UnrollSmallReductions},
    {"stream-rows", "read rows front to back while a tile of sums stays in cache", StreamRows},
    {"unroll-tile", "a few steps of a register tile in one pass", UnrollTiles},
    {"sum-order", "the longest loop of a sum innermost, inside those that masks follow", OrderSums},
    {"cache-tile", "pack the operand that every row of tiles reads again", TileCaches},
    {"sum-blocks", "cut a sum whose packed panels no cache holds, and do all of a block first",
     BlockSums},
    {"threads", "divide an outer loop among the cores", DivideAmongThreads},
}};

}  // namespace

std::span<const HeuristicStep> HeuristicSteps() { return kSteps; }

void ApplyHeuristic(Scheduler& scheduler, Decisions& decisions, const HeuristicTrace& trace) {
  const bool group = HasTemporaries(scheduler.kernel());
  for (const HeuristicStep& step : group ? GroupHeuristicSteps() : HeuristicSteps()) {
    const size_t before = scheduler.actions().size();
    Scheduler trial = scheduler;
    step.run(trial, decisions);
    const bool acts = trial.actions().size() > before;
    if (acts && decisions.Confirm(step.name, true)) scheduler = std::move(trial);
    if (trace) trace(step, scheduler.actions().size() - before);
  }
}

void ApplyHeuristic(Scheduler& scheduler, const HeuristicTrace& trace) {
  Decisions decisions;
  ApplyHeuristic(scheduler, decisions, trace);
}

}  // namespace quern
