#include <algorithm>

#include "codegen/stream_stores.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/product_tile.h"
#include "optimizer/window_tile.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

// Rows of a register tile: all accumulators, the vectors of one operand and one broadcast fit in
// the registers.
int64_t TileRows(int64_t most, int64_t size) {
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
int64_t PaddedRows(int64_t most, int64_t size) {
  int64_t best = 0;
  double best_cost = 0;
  for (int64_t rows = std::min(most, size); rows >= std::max<int64_t>(2, most / 2); --rows) {
    const int64_t tiles = (size + rows - 1) / rows;
    // Each step of a tile loads `vectors` and as many broadcasts as it has rows.
    const double cost = static_cast<double>(tiles * rows) * (1.0 + 1.0 / static_cast<double>(rows));
    if (best == 0 || cost < best_cost) {
      best = rows;
      best_cost = cost;
    }
  }
  return best;
}

// Operands of a statement that are used again along `row`; those with lanes count above all others.
int ReuseAlong(const StatementAccesses& statement, const UOp* lane, const UOp* row) {
  constexpr int kWithLanes = 16;
  int reuse = 0;
  for (const UOp* load : statement.loads) {
    const StatementAccesses one = {statement.node, {load}, nullptr};
    if (PatternAlong(one, row).fixed == 0) continue;
    reuse += PatternAlong(one, lane).fixed == 0 ? kWithLanes : 1;
  }
  return reuse;
}

// The output axis along which most of what depends on the lanes is reused.
const UOp* TileAxis(const RangeSets& sets, const StatementAccesses& statement, const UOp* lane) {
  const UOp* best = nullptr;
  int best_reuse = 0;
  for (const UOp* r : sets.Members(sets.Of(statement.node))) {
    if (r == lane || r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    const int reuse = ReuseAlong(statement, lane, r);
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

constexpr int64_t kMostTiles = 32;
// The most that divide `tiles`; 0: too few, or one block would be all.
int64_t BlockOfTiles(int64_t tiles) {
  if (tiles <= kMostTiles) return 0;
  int64_t block = kMostTiles;
  while (tiles % block != 0) --block;
  return block * 4 < kMostTiles ? 0 : block;
}

// Rounds the lane axis up to whole blocks if that adds little.
void PadToBlocks(Scheduler& s, int lane_axis, int64_t vector) {
  constexpr int64_t kMostPadding = 32;  // of so many parts, one
  const int64_t size = s.axes()[lane_axis].size;
  for (int64_t block = kMostTiles; block * 4 >= kMostTiles; block /= 2) {
    const int64_t padding = block * vector - size % (block * vector);
    if (padding > size / kMostPadding) continue;
    Try(s, ActionKind::kPadTo, lane_axis, block * vector);
    return;
  }
}

// Of a copy that turns its operand around by tiles: each reads a line of as many rows as it has
// lanes, and hardware fetches the lines beside them. These are still there for the next tiles if
// few tiles of other rows come before those.
void BlockTransposed(Scheduler& s, int lane_axis, int other_axis) {
  const int64_t block = BlockOfTiles(s.axes()[lane_axis].size);
  if (block == 0 || !Try(s, ActionKind::kLocal, lane_axis, block)) return;
  if (other_axis < lane_axis) Try(s, ActionKind::kSwap, other_axis, lane_axis);
}

// A copy that turns its operand around: a block of as many rows as lanes, which lowering transposes
// in registers. False if no such block fits.
bool TileTransposed(Scheduler& scheduler, const UOp* lane, const UOp* other, int64_t vector) {
  constexpr int64_t kLeastPadded = 2;  // tiles; elements one by one cost five times as much
  for (const UOp* r : {lane, other}) {
    if (r->range_size() % vector != 0 && r->range_size() < kLeastPadded * vector) return false;
  }
  Scheduler s = scheduler;  // Padding without tiles would be a loss.
  const int lane_axis = AxisNumber(s, lane);
  const int other_axis = AxisNumber(s, other);
  // The later axis first, so that the number of the earlier one stays.
  const int first = std::max(lane_axis, other_axis);
  const int second = std::min(lane_axis, other_axis);
  if (BlockOfTiles((lane->range_size() + vector - 1) / vector) == 0) {
    PadToBlocks(s, lane_axis, vector);
  }
  if (!PadAndApply(s, ActionKind::kUpcast, s.axes()[first].range, vector)) return false;
  if (!PadAndApply(s, ActionKind::kUpcast, s.axes()[second].range, vector)) return false;
  if (lane->range_size() > vector && other->range_size() > vector) {
    BlockTransposed(s, lane_axis, other_axis);
  }
  scheduler = std::move(s);
  return true;
}

// One side of a register tile.
struct Side {
  const UOp* axis = nullptr;  // nullptr: there is none
  int64_t amount = 1;
};

// Puts the sides into registers in their order, padding what they do not divide. False if the first
// was refused.
bool UpcastSides(Scheduler& s, const std::vector<Side>& sides) {
  std::vector<int> numbers;
  for (const Side& side : sides) {
    numbers.push_back(side.axis == nullptr ? -1 : AxisNumber(s, side.axis));
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    if (numbers[i] < 0 || sides[i].amount < 2) continue;
    const int64_t size = s.axes()[numbers[i]].size;
    if (!PadAndApply(s, ActionKind::kUpcast, s.axes()[numbers[i]].range, sides[i].amount)) {
      if (i == 0) return false;
      continue;
    }
    if (size > sides[i].amount) continue;
    // An axis that went into registers whole left the loops, and those behind it moved up.
    for (size_t j = i + 1; j < numbers.size(); ++j) {
      if (numbers[j] > numbers[i]) --numbers[j];
    }
  }
  return true;
}

// A product's tile, lanes first.
bool TileProduct(Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                 const StatementAccesses* store, Decisions& decisions) {
  const std::vector<ProductTile> tiles = ProductTiles(s, sets, reduce, store);
  if (tiles.empty()) return false;
  const ProductTile tile = decisions.Pick("product-tile", tiles);
  return UpcastSides(
      s,
      {{tile.lane_axis, tile.lanes}, {tile.row_axis, tile.rows}, {tile.other_axis, tile.others}});
}

// For lanes along a scan: an output axis with a scan of its own at each place. One scan waits for
// its prefixes most of the time; several do not.
const UOp* RowsOfScans(const Scheduler& s, const RangeSets& sets, const StatementAccesses& store,
                       const UOp* lane) {
  if (!IsScanned(s.kernel(), lane)) return nullptr;
  const UOp* rows = nullptr;  // the innermost one
  for (const UOp* r : sets.Members(sets.Of(store.node))) {
    const bool loop = r->range_type() == AxisType::kLoop && r->range_size() >= 2;
    if (loop && r != lane && !IsScanned(s.kernel(), r)) rows = r;
  }
  return rows;
}

// How many elements the lane axis gets: two registers beside rows that share them, up to four
// without.
int64_t LaneAmount(int64_t size, int64_t vector, bool has_rows) {
  if (size < vector) return size;
  for (int64_t registers = has_rows ? 2 : 4; registers >= 1; registers /= 2) {
    if (size % (registers * vector) == 0) return registers * vector;
  }
  // Nothing divides: the axis will be padded.
  return size >= (has_rows ? 2 : 4) * vector ? 2 * vector : vector;
}

// Whether each operand is the same for all lanes or for all rows, as in a product. In a depthwise
// convolution each row has vectors of its own.
bool SharesOperands(const StatementAccesses& statement, const UOp* lane, const UOp* row) {
  for (const UOp* load : statement.loads) {
    const StatementAccesses one = {statement.node, {load}, nullptr};
    if (PatternAlong(one, lane).fixed == 0 && PatternAlong(one, row).fixed == 0) return false;
  }
  return true;
}

// The rows beside `lanes`, as many as registers allow.
OutputTile WithRows(const Scheduler& s, int64_t lanes, int64_t vector, const UOp* row_axis,
                    bool shared) {
  const int64_t vectors = (lanes + vector - 1) / vector;
  // Rows with vectors of their own need registers for those, too.
  const int64_t registers = s.target().vector_registers;
  const int64_t most = shared ? (registers - vectors - 1) / vectors : registers / 4;
  const int64_t size = row_axis->range_size();
  int64_t rows = TileRows(most, size);
  if (rows == 0) rows = PaddedRows(most, size);
  return {lanes, row_axis, rows};
}

// Rows of scans, whose prefixes and carries wait for each other: four at once. But one alone, in
// vectors of two registers, if what it writes comes into caches that do not hold all of it: four
// would take turns there. Of one sequence four registers, two where memory is what it waits for.
// `rows` may be nullptr.
OutputTile ScanTile(const Scheduler& s, const StatementAccesses& store, int64_t size,
                    int64_t vector, const UOp* rows) {
  constexpr int64_t kMostRows = 4;
  const UOp* output = store.node->src(0)->src(0);
  const int64_t bytes = output->buffer_size() * ByteSize(output->dtype.scalar);
  if (rows == nullptr) {
    const bool streams = bytes >= StreamBytes(s.target()) && size % (2 * vector) == 0;
    return {streams ? 2 * vector : LaneAmount(size, vector, /*shared=*/false), nullptr, 1};
  }
  const bool passes = bytes > s.target().l2_bytes && bytes < StreamBytes(s.target());
  if (passes && size % (2 * vector) == 0) return {2 * vector, nullptr, 1};
  const int64_t most = std::min<int64_t>(kMostRows, s.target().vector_registers / 4);
  const int64_t together = TileRows(most, rows->range_size());
  return {std::min(size, vector), rows,
          together == 0 ? PaddedRows(most, rows->range_size()) : together};
}

// Where a row is reduced with lanes along itself and then written: the same lanes, so that both
// loops, padded alike, have the same steps, and one can keep values for the other. 0: there is no
// such reduction.
int64_t LanesOfReduction(const Scheduler& s, int64_t size) {
  for (const UOp* u : Toposort(s.kernel())) {
    if (u->op != Op::kReduce) continue;
    int64_t steps = 1;
    int64_t lanes = 1;
    for (const UOp* r : u->src().subspan(1)) {
      (r->range_type() == AxisType::kUnroll ? lanes : steps) *= r->range_size();
    }
    if (lanes > 1 && steps * lanes != size && (size + lanes - 1) / lanes == steps) return lanes;
  }
  return 0;
}

// Tiles for lanes along `lane`: what is believed to be best, then others for a search to measure.
// `row_axis` may be nullptr.
std::vector<OutputTile> OutputTiles(const Scheduler& s, const RangeSets& sets,
                                    const StatementAccesses& statement, const UOp* lane,
                                    const StatementAccesses* store, const UOp* row_axis) {
  if (statement.node->op == Op::kReduce && store != nullptr) {
    std::vector<OutputTile> window = WindowTiles(s, sets, statement, *store, lane);
    if (!window.empty()) return window;
  }
  const int64_t vector = VectorLanes(s, statement);
  const int64_t size = lane->range_size();
  const bool shared = row_axis != nullptr && SharesOperands(statement, lane, row_axis);
  const int64_t lanes =
      row_axis != nullptr && !shared ? std::min(size, vector) : LaneAmount(size, vector, shared);
  std::vector<OutputTile> tiles = {{lanes, nullptr, 1}};
  const bool stores = statement.node->op == Op::kStore;
  if (stores && IsScanned(s.kernel(), lane)) {
    tiles[0] = ScanTile(s, statement, size, vector, row_axis);
  } else if (row_axis != nullptr) {
    tiles[0] = WithRows(s, lanes, vector, row_axis, shared);
  } else if (const int64_t same = LanesOfReduction(s, size); stores && same != 0) {
    tiles[0].lanes = same;
  }
  const auto add = [&](const OutputTile& tile) {
    constexpr size_t kMost = 24;
    const bool known = std::find(tiles.begin(), tiles.end(), tile) != tiles.end();
    if (!known && tiles.size() < kMost) tiles.push_back(tile);
  };
  for (int64_t vectors : {1, 2, 4}) {
    if (vectors > 1 && size < vectors * vector) break;
    const int64_t amount = std::min(size, vectors * vector);
    add({amount, nullptr, 1});
    for (const UOp* r : sets.Members(sets.Of(statement.node))) {
      if (r == lane || r->range_type() != AxisType::kLoop || IsScanned(s.kernel(), r)) continue;
      for (int64_t rows : {2, 4, 8}) {
        const bool fits = rows * vectors * 2 <= s.target().vector_registers;
        if (fits && r->range_size() % rows == 0) add({amount, r, rows});
      }
    }
  }
  return tiles;
}

void TileOutput(Scheduler& s, const RangeSets& sets, const StatementAccesses& statement,
                const StatementAccesses* store, Decisions& decisions) {
  if (IsProduct(sets, statement) && TileProduct(s, sets, statement, store, decisions)) return;
  const BestAxis lane = BestOutputLane(sets, statement, store);
  if (lane.range == nullptr) return;
  const bool reduces = statement.node->op == Op::kReduce;
  const UOp* other = reduces ? nullptr : TransposedAxis(sets, statement, lane.range);
  if (other != nullptr && TileTransposed(s, lane.range, other, VectorLanes(s, statement))) return;
  if (lane.score < 0) return;
  const UOp* rows =
      reduces ? TileAxis(sets, statement, lane.range) : RowsOfScans(s, sets, statement, lane.range);
  const std::vector<OutputTile> tiles = OutputTiles(s, sets, statement, lane.range, store, rows);
  const OutputTile tile = decisions.Pick("output-tile", tiles);
  UpcastSides(s, {{lane.range, tile.lanes}, {tile.row_axis, tile.rows}});
}

}  // namespace

void TileRegisters(Scheduler& s, Decisions& decisions) {
  for (bool changed = true; changed;) {
    changed = false;
    const size_t before = s.actions().size();
    const RangeSets sets(s.kernel());
    const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
    const StatementAccesses* store = FindStore(all);
    for (const StatementAccesses& statement : all) {
      // A reduction that has lanes along the reduced axis is left to TileDotProducts.
      if (HasRegisterAxis(sets, statement.node)) continue;
      TileOutput(s, sets, statement, statement.node->op == Op::kReduce ? store : &statement,
                 decisions);
      changed = s.actions().size() != before;
      if (changed) break;
    }
  }
}

}  // namespace quern
