#include "optimizer/heuristic.h"

#include <algorithm>
#include <array>

#include "optimizer/access_pattern.h"
#include "optimizer/work.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// A kernel that takes less than this is done before a second thread has woken up.
constexpr double kMinThreadedSeconds = 20e-6;
// Rough speed of one core, for that estimate only.
constexpr double kOperationsPerSecond = 5e10;
constexpr double kBytesPerSecond = 1e10;

int AxisNumber(const Scheduler& s, const UOp* range) {
  for (size_t i = 0; i < s.axes().size(); ++i) {
    if (s.axes()[i].range == range) return static_cast<int>(i);
  }
  return -1;
}

int ReduceNumber(const Scheduler& s, const UOp* range) {
  for (size_t i = 0; i < s.reduce_axes().size(); ++i) {
    if (s.axes()[s.reduce_axes()[i]].range == range) return static_cast<int>(i);
  }
  return -1;
}

bool Try(Scheduler& s, ActionKind kind, int axis, int64_t amount) {
  return s.Apply({kind, axis, amount}).ok();
}

// Lanes of one register for the widest element that the statement touches.
int64_t VectorLanes(const Scheduler& s, const StatementAccesses& accesses) {
  int bytes = 1;
  auto look = [&](const UOp* u) { bytes = std::max(bytes, ByteSize(u->dtype.scalar)); };
  look(accesses.node->op == Op::kReduce ? accesses.node : accesses.node->src(1));
  for (const UOp* load : accesses.loads) look(load);
  // A matrix instruction has the lanes of its accumulator, whatever its operands.
  return s.target().vector_bytes / bytes;
}

bool HasRegisterAxis(const RangeSets& sets, const UOp* node) {
  uint64_t set = sets.Of(node);
  if (node->op == Op::kReduce) {
    for (const UOp* r : node->src().subspan(1)) set |= sets.Bit(r);
  }
  for (const UOp* r : sets.Members(set)) {
    // The axis of a matrix instruction leaves lanes and rows open.
    if (IsRegisterAxis(r->range_type()) && r->range_type() != AxisType::kWarp) return true;
  }
  return false;
}

// How well a statement vectorises along a range.
int LaneScore(const AccessPattern& p) { return 2 * p.contiguous - 2 * p.strided - 3 * p.gathered; }

struct BestAxis {
  const UOp* range = nullptr;
  int score = -1000;
};

BestAxis BestReduceLane(const StatementAccesses& reduce) {
  BestAxis best;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (IsRegisterAxis(r->range_type()) || r->range_size() < 2) continue;
    const int score = LaneScore(PatternAlong(reduce, r)) - 1;  // The lanes must be combined.
    if (score > best.score || (score == best.score && r->range_size() > best.range->range_size())) {
      best = {r, score};
    }
  }
  return best;
}

// The ranges on which the REDUCEs below a statement depend: their tiles are decided there.
uint64_t ReducedOutputs(const RangeSets& sets, const UOp* node) {
  uint64_t set = 0;
  for (const UOp* u : Toposort(node)) {
    if (u != node && u->op == Op::kReduce) set |= sets.Of(u);
  }
  return set;
}

BestAxis BestOutputLane(const RangeSets& sets, const StatementAccesses& statement,
                        const StatementAccesses* store) {
  BestAxis best;
  const bool is_store = statement.node->op == Op::kStore;
  const uint64_t decided = is_store ? ReducedOutputs(sets, statement.node) : 0;
  for (const UOp* r : sets.Members(sets.Of(statement.node) & ~decided)) {
    if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    int score = LaneScore(PatternAlong(statement, r));
    if (store != nullptr) {
      const AccessPattern p = PatternAlong(*store, r);
      score += (p.store_contiguous ? 1 : p.store_depends ? -1 : 0);
      if (store != &statement) score += LaneScore(p);
      // A copy that turns its operand around is written along the lanes and read in blocks.
      if (is_store && p.store_contiguous) score = std::max(score, 2);
    }
    if (score > best.score || (score == best.score && r->range_size() > best.range->range_size())) {
      best = {r, score};
    }
  }
  return best;
}

// The largest of `amounts` (descending) that divides `size`, or 0.
int64_t Dividing(int64_t size, std::initializer_list<int64_t> amounts) {
  for (int64_t a : amounts) {
    if (a >= 2 && a <= size && size % a == 0) return a;
  }
  return 0;
}

const StatementAccesses* FindStore(const std::vector<StatementAccesses>& all) {
  for (const StatementAccesses& a : all) {
    if (a.store != nullptr) return &a;
  }
  return nullptr;
}

// --- Steps ---

void MatrixInstructions(Scheduler& s) {
  // VDPBF16PS runs at half the speed of f32 products on Intel's cores and at twice on AMD's: see
  // docs/decisions.md. The search may still choose it.
  const bool slow_bf16 = s.target().llvm_cpu.rfind("znver", 0) != 0;
  for (const UOp* u : Toposort(s.kernel())) {
    if (u->op == Op::kLoad && u->dtype.scalar == ScalarType::kBF16 && slow_bf16) return;
  }
  for (size_t i = 0; i < s.reduce_axes().size(); ++i) {
    if (Try(s, ActionKind::kTensorCore, static_cast<int>(i), 0)) return;
  }
}

double EstimateSeconds(const UOp* kernel) {
  const WorkEstimate work = EstimateWork(kernel);
  return work.cost / kOperationsPerSecond + work.bytes / kBytesPerSecond;
}

// Cuts a long reduction that has too few outputs to keep the cores busy.
void SplitForThreads(Scheduler& s) {
  const int64_t cores = s.target().cores;
  if (cores < 2 || EstimateSeconds(s.kernel()) < kMinThreadedSeconds) return;
  double outputs = 1;
  for (const Axis& a : s.axes()) {
    if (!a.reduce) outputs *= static_cast<double>(a.size);
  }
  if (outputs >= static_cast<double>(cores)) return;
  for (size_t i = 0; i < s.reduce_axes().size(); ++i) {
    const int axis = s.reduce_axes()[i];
    if (s.axes()[axis].size < 4096 || s.axes()[axis].size % cores != 0) continue;
    if (!Try(s, ActionKind::kGroupTop, static_cast<int>(i), cores)) continue;
    Try(s, ActionKind::kThread, axis, cores);
    return;
  }
}

// Reductions whose operands are contiguous along the reduced axis: lanes there, combined at the
// end.
void GroupedReductions(Scheduler& s) {
  SplitForThreads(s);
  for (const Axis& a : s.axes()) {
    if (a.type == AxisType::kWarp) return;  // The lanes belong to the outputs.
  }
  for (bool changed = true; changed;) {
    changed = false;
    const RangeSets sets(s.kernel());
    const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
    const StatementAccesses* store = FindStore(all);
    for (const StatementAccesses& reduce : all) {
      if (reduce.node->op != Op::kReduce || HasRegisterAxis(sets, reduce.node)) continue;
      const BestAxis lane = BestReduceLane(reduce);
      const BestAxis output = BestOutputLane(sets, reduce, store);
      if (lane.range == nullptr || lane.score <= 0 || lane.score <= output.score) continue;
      const int64_t vector = VectorLanes(s, reduce);
      const int64_t size = lane.range->range_size();
      // Independent sums hide the latency of one: several registers here, unless a tile of outputs
      // (DotTile) will give them.
      int64_t most = 4 * vector;
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
        if (PatternAlong(reduce, r).fixed > 0) most = std::max(vector, most / 2);
      }
      int64_t amount = 0;
      for (int64_t lanes = most; lanes >= vector && amount == 0; lanes /= 2) {
        amount = Dividing(size, {lanes});
      }
      if (amount == 0 && size >= 2 * vector) {
        if (!Try(s, ActionKind::kPadTo, AxisNumber(s, lane.range), vector)) continue;
        changed = true;  // Numbers and sizes are new; the next turn unrolls it.
        break;
      }
      if (amount == 0) amount = Dividing(size, {vector / 2, vector / 4});
      if (amount == 0 && size <= vector) amount = size;
      if (amount < 2) continue;
      if (Try(s, ActionKind::kUnroll, ReduceNumber(s, lane.range), amount)) {
        changed = true;
        break;
      }
    }
  }
}

// Rows of a register tile: all accumulators, the vectors of one operand and one broadcast fit in
// the registers.
int64_t TileRows(const Scheduler& s, int64_t size, int64_t vectors) {
  const int64_t most = (s.target().vector_registers - vectors - 1) / vectors;
  int64_t best = 0;
  for (int64_t rows = std::min(most, size); rows >= 2; --rows) {
    if (size % rows == 0) {
      best = rows;
      break;
    }
  }
  return best * 2 >= std::min(most, size) ? best : 0;
}

// The rows for a size that nothing suitable divides: the least padding, then the most rows.
int64_t PaddedRows(const Scheduler& s, int64_t size, int64_t vectors) {
  const int64_t most = (s.target().vector_registers - vectors - 1) / vectors;
  int64_t best = 0;
  double best_cost = 0;
  for (int64_t rows = std::min(most, size); rows >= std::max<int64_t>(2, most / 2); --rows) {
    const double padded = static_cast<double>((size + rows - 1) / rows * rows);
    // Each step of a tile loads `vectors` and as many broadcasts as it has rows.
    const double cost = padded * (1.0 + 1.0 / static_cast<double>(rows));
    if (best == 0 || cost < best_cost) {
      best = rows;
      best_cost = cost;
    }
  }
  return best;
}

bool UpcastPadded(Scheduler& s, const UOp* range, int64_t amount) {
  const int axis = AxisNumber(s, range);
  if (range->range_size() % amount != 0 && !Try(s, ActionKind::kPadTo, axis, amount)) return false;
  return Try(s, ActionKind::kUpcast, axis, amount);
}

// The output axis along which most of what depends on the lanes is reused.
const UOp* TileAxis(const RangeSets& sets, const StatementAccesses& statement, const UOp* lane) {
  const UOp* best = nullptr;
  int best_reuse = 0;
  for (const UOp* r : sets.Members(sets.Of(statement.node))) {
    if (r == lane || r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    const int reuse = PatternAlong(statement, r).fixed;
    if (reuse > best_reuse ||
        (reuse == best_reuse && best != nullptr && r->range_size() > best->range_size())) {
      best = r;
      best_reuse = reuse;
    }
  }
  return best;
}

// Of a store whose loads lie apart along the lanes: the output axis along which they are
// contiguous.
const UOp* TransposedAxis(const RangeSets& sets, const StatementAccesses& store, const UOp* lane) {
  if (PatternAlong(store, lane).strided == 0) return nullptr;
  for (const UOp* r : sets.Members(sets.Of(store.node))) {
    if (r == lane || r->range_type() != AxisType::kLoop) continue;
    if (PatternAlong(store, r).contiguous > 0) return r;
  }
  return nullptr;
}

void TileOutput(Scheduler& s, const RangeSets& sets, const StatementAccesses& statement,
                const StatementAccesses* store) {
  const BestAxis lane = BestOutputLane(sets, statement, store);
  if (lane.range == nullptr) return;
  const bool is_store = statement.node->op == Op::kStore;
  const bool copies_apart = is_store && TransposedAxis(sets, statement, lane.range) != nullptr;
  if (lane.score < 0 && !copies_apart) return;
  const int64_t vector = VectorLanes(s, statement);
  const int64_t size = lane.range->range_size();
  const bool reduces = statement.node->op == Op::kReduce;
  if (!reduces) {
    if (const UOp* other = TransposedAxis(sets, statement, lane.range)) {
      // A block of as many rows as lanes is transposed in registers.
      const int64_t columns = other->range_size() % vector == 0 ? vector : 0;
      const int64_t block = size % vector == 0 ? vector : 0;
      if (columns != 0 && block != 0) {
        // The later axis first, so that the number of the other stays.
        const std::array<const UOp*, 2> order = AxisNumber(s, other) > AxisNumber(s, lane.range)
                                                    ? std::array<const UOp*, 2>{other, lane.range}
                                                    : std::array<const UOp*, 2>{lane.range, other};
        const int first = AxisNumber(s, order[0]);
        const int second = AxisNumber(s, order[1]);
        if (Try(s, ActionKind::kUpcast, first, vector)) {
          Try(s, ActionKind::kUpcast, second, vector);
        }
        return;
      }
    }
  }
  const UOp* rows = reduces ? TileAxis(sets, statement, lane.range) : nullptr;
  int64_t lanes = 0;
  if (rows != nullptr) {
    lanes = Dividing(size, {2 * vector, vector});
    if (lanes == 0) lanes = size >= 2 * vector ? 2 * vector : vector;
  } else {
    lanes = Dividing(size, {4 * vector, 2 * vector, vector});
    if (lanes == 0 && size > vector) lanes = size >= 4 * vector ? 2 * vector : vector;
  }
  if (size < vector) lanes = size;
  if (lanes > size && lanes < 2 * size) lanes = std::min(lanes, vector);
  int rows_axis = rows == nullptr ? -1 : AxisNumber(s, rows);
  const int lane_axis = AxisNumber(s, lane.range);
  if (!UpcastPadded(s, lane.range, lanes) || rows == nullptr) return;
  // A lane axis that went into registers whole left the loops, and those behind it moved up.
  if (size <= lanes && lane_axis < rows_axis) --rows_axis;
  const int64_t vectors = (lanes + vector - 1) / vector;
  const int64_t row_size = s.axes()[rows_axis].size;
  int64_t amount = TileRows(s, row_size, vectors);
  if (amount == 0) amount = PaddedRows(s, row_size, vectors);
  if (amount >= 2) UpcastPadded(s, s.axes()[rows_axis].range, amount);
}

void RegisterTile(Scheduler& s) {
  for (bool changed = true; changed;) {
    changed = false;
    const size_t before = s.actions().size();
    const RangeSets sets(s.kernel());
    const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
    const StatementAccesses* store = FindStore(all);
    for (const StatementAccesses& statement : all) {
      const bool reduces = statement.node->op == Op::kReduce;
      if (!reduces && HasRegisterAxis(sets, statement.node)) continue;
      if (reduces && HasRegisterAxis(sets, statement.node)) {
        // Lanes over the reduced axis: a small tile of outputs shares the loads.
        continue;
      }
      TileOutput(s, sets, statement, reduces ? store : &statement);
      if (s.actions().size() != before) {
        changed = true;
        break;
      }
    }
  }
}

// Outputs of a reduction with lanes along the reduced axis: a tile of 4 × 4 (or 4) of them uses
// each loaded vector several times and hides the latency of the sums.
void DotTile(Scheduler& s) {
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce) continue;
    bool over_registers = false;
    for (const UOp* r : reduce.node->src().subspan(1)) {
      over_registers |= IsRegisterAxis(r->range_type()) && r->range_type() != AxisType::kWarp;
    }
    if (!over_registers) continue;
    std::vector<const UOp*> tile;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
      if (PatternAlong(reduce, r).fixed > 0) tile.push_back(r);
    }
    if (tile.empty()) continue;
    // Innermost first, so that the numbers of the others do not change.
    std::reverse(tile.begin(), tile.end());
    if (tile.size() > 2) tile.resize(2);
    std::vector<int> numbers;
    for (const UOp* r : tile) numbers.push_back(AxisNumber(s, r));
    for (int number : numbers) {
      const int64_t size = s.axes()[number].size;
      const int64_t amount = Dividing(size, {4, 3, 2});
      if (amount != 0 && amount < size) Try(s, ActionKind::kUpcast, number, amount);
    }
    return;
  }
}

// Small reduced axes, such as the window of a convolution, cost more as loops than as copies.
void SmallReductions(Scheduler& s) {
  constexpr int64_t kSmall = 4;
  for (size_t i = s.reduce_axes().size(); i-- > 0;) {
    const Axis& axis = s.axes()[s.reduce_axes()[i]];
    if (axis.type != AxisType::kReduce || axis.size > kSmall || axis.size < 2) continue;
    Try(s, ActionKind::kUnroll, static_cast<int>(i), 0);
  }
}

// A few steps of a register tile in one pass of its loop.
void UnrollTile(Scheduler& s) {
  constexpr int64_t kSteps = 4;
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    const UOp* innermost = nullptr;
    bool unrolled = false;
    for (const UOp* r : reduce.node->src().subspan(1)) {
      if (r->range_type() == AxisType::kReduce) innermost = r;
      unrolled |= r->range_type() == AxisType::kUnroll || r->range_type() == AxisType::kWarp;
    }
    int register_axes = 0;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      register_axes += r->range_type() == AxisType::kUpcast ? 1 : 0;
    }
    if (innermost == nullptr || unrolled || register_axes < 2) continue;
    if (innermost->range_size() < 4 * kSteps) continue;
    if (Try(s, ActionKind::kUnroll, ReduceNumber(s, innermost), kSteps)) return;
  }
}

// A product reads one operand again for every row of tiles: keep its panel, packed, in cache.
void CacheTile(Scheduler& s) {
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    bool tiled = false;
    int64_t depth = 1;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      tiled |= r->range_type() == AxisType::kUpcast;
    }
    for (const UOp* r : reduce.node->src().subspan(1)) {
      depth *= r->range_size();
      // Lanes along the reduced axis read their operands as they lie in memory.
      if (IsRegisterAxis(r->range_type()) && r->range_size() >= VectorLanes(s, reduce)) depth = 0;
    }
    if (!tiled || depth < 64) continue;
    // The output loop along which the lane operand is reused most often.
    const UOp* best = nullptr;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      if (r->range_type() != AxisType::kLoop || r->range_size() < 8) continue;
      for (const UOp* load : reduce.loads) {
        const bool reused = !sets.Depends(load, r);
        bool has_lanes = false;
        for (const UOp* q : sets.Members(sets.Of(load))) {
          has_lanes |=
              q->range_type() == AxisType::kUpcast && q->range_size() >= VectorLanes(s, reduce);
        }
        if (reused && has_lanes && (best == nullptr || r->range_size() > best->range_size())) {
          best = r;
        }
      }
    }
    if (best == nullptr) continue;
    Try(s, ActionKind::kLocal, AxisNumber(s, best), 0);
    return;
  }
}

void Threads(Scheduler& s) {
  const int64_t cores = s.target().cores;
  if (cores < 2 || EstimateSeconds(s.kernel()) < kMinThreadedSeconds) return;
  // The division with the shortest longest chunk; padding is worth it if that makes it shorter.
  struct Choice {
    int axis = -1;
    int64_t threads = 0;
    double share = 1;  // of the work, in the largest chunk
  };
  Choice best;
  for (size_t i = 0; i < s.axes().size(); ++i) {
    const Axis& a = s.axes()[i];
    if (a.reduce || a.type != AxisType::kLoop) continue;
    for (int64_t threads = cores; threads > 1; --threads) {
      const int64_t chunk = (a.size + threads - 1) / threads;
      const bool divides = a.size % threads == 0;
      if (!divides && a.size < 4 * threads) continue;
      const double share = static_cast<double>(chunk) / static_cast<double>(a.size);
      const double margin = divides ? 0 : 1e-3;  // Padding brings masks with it.
      if (share + margin < best.share) best = {static_cast<int>(i), threads, share + margin};
    }
  }
  if (best.axis < 0) return;
  Scheduler trial = s;
  if (trial.axes()[best.axis].size % best.threads != 0 &&
      !Try(trial, ActionKind::kPadTo, best.axis, best.threads)) {
    return;
  }
  if (Try(trial, ActionKind::kThread, best.axis, best.threads))
    s.ApplyAll({trial.actions().begin() + static_cast<int64_t>(s.actions().size()),
                trial.actions().end()})
        .IgnoreError();
}

constexpr std::array<HeuristicStep, 8> kSteps = {{
    {"matrix-instructions", "use matrix instructions if the kernel is a product that fits",
     MatrixInstructions},
    {"grouped-reductions", "lanes along a reduced axis whose operands are contiguous there",
     GroupedReductions},
    {"register-tile", "lanes and rows of outputs in registers", RegisterTile},
    {"dot-tile", "several outputs for a reduction with lanes along the reduced axis", DotTile},
    {"small-reductions", "unroll short reduced axes", SmallReductions},
    {"unroll-tile", "a few steps of a register tile in one pass", UnrollTile},
    {"cache-tile", "pack the operand that every row of tiles reads again", CacheTile},
    {"threads", "divide an outer loop among the cores", Threads},
}};

}  // namespace

std::span<const HeuristicStep> HeuristicSteps() { return kSteps; }

void ApplyHeuristic(Scheduler& scheduler, const HeuristicTrace& trace) {
  for (const HeuristicStep& step : kSteps) {
    const size_t before = scheduler.actions().size();
    step.run(scheduler);
    if (trace) trace(step, scheduler.actions().size() - before);
  }
}

}  // namespace quern
