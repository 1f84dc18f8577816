#include <algorithm>
#include <array>

#include "optimizer/best_first.h"
#include "optimizer/heuristic.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/row_groups.h"
#include "rewrite/linear.h"
#include "rewrite/temporaries.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

// Registers of lanes of a product.
constexpr int64_t kVectors = 2;
// Register tiles of rows that one block of rows has at most.
constexpr int64_t kMostTiles = 8;

bool Contains(const Ranges& ranges, const UOp* r) {
  return std::find(ranges.begin(), ranges.end(), r) != ranges.end();
}

// What the steps look at, anew in each since actions change all ranges.
struct Group {
  explicit Group(const Scheduler& s)
      : sets(s.kernel()),
        statements(CollectAccesses(s.kernel())),
        shared(SharedRanges(s.kernel())) {
    Ranges loops = shared;
    std::erase_if(loops, [](const UOp* r) { return IsRegisterAxis(r->range_type()); });
    rows = RowsOfGroup(s.kernel(), sets, loops);
  }

  bool IsRows(const UOp* range) const {
    return Contains(shared, range) &&
           std::any_of(statements.begin(), statements.end(),
                       [&](const StatementAccesses& s) { return MultipliesRows(sets, s, range); });
  }

  // Whether a statement multiplies rows by something that they share.
  bool IsProduct(const StatementAccesses& s) const {
    return std::any_of(shared.begin(), shared.end(),
                       [&](const UOp* r) { return MultipliesRows(sets, s, r); });
  }

  // The STORE that a REDUCE is for.
  const StatementAccesses* StoreOf(const StatementAccesses& reduce) const {
    for (const StatementAccesses& s : statements) {
      if (s.node->op != Op::kStore) continue;
      const std::vector<const UOp*> below = Toposort(s.node);
      if (std::find(below.begin(), below.end(), reduce.node) != below.end()) return &s;
    }
    return nullptr;
  }

  bool HasProduct(const StatementAccesses& store) const {
    return std::any_of(statements.begin(), statements.end(), [&](const StatementAccesses& s) {
      return s.node->op == Op::kReduce && IsProduct(s) && StoreOf(s) == &store;
    });
  }

  // Ranges of a statement that other stores do not have.
  Ranges OwnRanges(const StatementAccesses& s) const {
    uint64_t set = sets.Of(s.node);
    if (s.node->op == Op::kReduce) {
      for (const UOp* r : s.node->src().subspan(1)) set |= sets.Bit(r);
    }
    Ranges own = sets.Members(set);
    std::erase_if(own, [&](const UOp* r) { return Contains(shared, r); });
    return own;
  }

  bool HasOwnRegisters(const StatementAccesses& s) const {
    const Ranges own = OwnRanges(s);
    return std::any_of(own.begin(), own.end(),
                       [](const UOp* r) { return IsRegisterAxis(r->range_type()); });
  }

  RangeSets sets;
  std::vector<StatementAccesses> statements;
  Ranges shared;
  const UOp* rows = nullptr;
};

// Bytes of all temporaries for one value of the loops that are shared, rows in registers included.
int64_t BytesOfTile(const Scheduler& s, const Group& group) {
  int64_t iterations = 1;
  for (const UOp* r : group.shared) {
    if (!IsRegisterAxis(r->range_type())) iterations *= r->range_size();
  }
  int64_t bytes = 0;
  for (const Temporary& t : FindTemporaries(s.kernel())) {
    bytes += t.buffer->buffer_size() * ByteSize(t.buffer->dtype.scalar);
  }
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, iterations));
}

// Whether the second-level cache does not hold what all rows share, so that a panel of it should be
// used for several tiles of rows. A single tile has its temporaries nearest.
bool WantsBlocks(const Scheduler& s, const Group& group) {
  return SharedOperandBytes(s.kernel(), group.sets, group.shared, group.rows) > s.target().l2_bytes;
}

// Tiles of rows whose temporaries fit the second-level cache.
int64_t TilesInCache(const Scheduler& s, int64_t bytes_of_tile) {
  return std::clamp<int64_t>(s.target().l2_bytes / bytes_of_tile, 1, kMostTiles);
}

// Whole iterations of the outer loops for each core, or else blocks of rows.
void DivideGroup(Scheduler& s, Decisions&) {
  constexpr int64_t kLeastRows = 16;
  const int64_t cores = s.target().cores;
  if (!PaysThreads(s)) return;
  const Group group(s);
  for (int64_t threads = cores; threads > 1; --threads) {
    for (const UOp* r : group.shared) {
      if (group.IsRows(r) || r->range_size() % threads != 0) continue;
      if (Try(s, ActionKind::kThread, AxisNumber(s, r), threads)) return;
    }
    if (group.rows == nullptr || group.rows->range_size() < kLeastRows * threads) continue;
    if (PadAndApply(s, ActionKind::kThread, group.rows, threads)) return;
  }
}

// Rows of a register tile, and of how many tiles a block is made.
struct RowTile {
  int64_t rows = 1;
  int64_t count = 1;
  double cost = 0;
};

// The least padding, the most rows beside the vectors of a product, and few new panels: the best
// first.
std::vector<RowTile> RowTiles(const Scheduler& s, const Group& group) {
  constexpr double kPanel = 0.1;  // beside the work of a tile
  const int64_t size = group.rows->range_size();
  const int64_t row_bytes = BytesOfTile(s, group);
  const bool blocks = WantsBlocks(s, group);
  const int64_t most = (s.target().vector_registers - kVectors - 1) / kVectors;
  std::vector<RowTile> tiles;
  for (int64_t rows = std::min(most, size); rows >= std::min<int64_t>(2, size); --rows) {
    for (int64_t count = blocks ? TilesInCache(s, rows * row_bytes) : 1; count >= 1; --count) {
      const int64_t block = rows * count;
      const int64_t padded = (size + block - 1) / block * block;
      const double cost = static_cast<double>(padded) * (1 + 1 / static_cast<double>(rows)) *
                          (1 + kPanel / static_cast<double>(count));
      tiles.push_back({rows, count, cost});
    }
  }
  constexpr size_t kMost = 12;
  return BestFirst(tiles, kMost, [](const RowTile& t) { return t.cost; });
}

// The same rows of all statements in registers.
void TileGroupRows(Scheduler& s, Decisions& decisions) {
  const Group group(s);
  if (group.rows == nullptr) return;
  const std::vector<RowTile> tiles = RowTiles(s, group);
  if (tiles.empty()) return;
  const RowTile tile = decisions.Pick("row-tile", tiles);
  const int axis = AxisNumber(s, group.rows);
  const int64_t block = tile.rows * tile.count;
  if (!PadTo(s, group.rows, block)) return;
  Try(s, ActionKind::kUpcast, axis, tile.rows);
}

// The axis along which a statement stores neighbours, or its longest one.
const UOp* LaneAxis(const Group& group, const StatementAccesses& statement) {
  const StatementAccesses* store =
      statement.node->op == Op::kStore ? &statement : group.StoreOf(statement);
  const UOp* best = nullptr;
  bool best_contiguous = false;
  for (const UOp* r : group.OwnRanges(statement)) {
    if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    const bool contiguous = store != nullptr && PatternAlong(*store, r).store_contiguous;
    if (best != nullptr && best_contiguous && !contiguous) continue;
    const bool longer = best == nullptr || r->range_size() > best->range_size();
    if (longer || (contiguous && !best_contiguous)) best = r;
    best_contiguous |= contiguous;
  }
  return best;
}

// Several registers of lanes beside the rows of a product, one beside those of anything else.
int64_t LaneCount(int64_t size, int64_t vector, bool product, Decisions& decisions) {
  if (size <= vector) return size;
  const int64_t wide = kVectors * vector;
  const bool fits = size % wide == 0 || size > wide;
  if (!fits) return vector;
  return decisions.Confirm("lanes", product) ? wide : vector;
}

// Lanes for one statement that has none; true if there was one.
bool AddLanes(Scheduler& s, Decisions& decisions) {
  const Group group(s);
  for (const StatementAccesses& statement : group.statements) {
    if (group.HasOwnRegisters(statement)) continue;
    const int64_t vector = VectorLanes(s, statement);
    const bool product = group.IsProduct(statement);
    if (statement.node->op == Op::kReduce && !product) {
      // Of a row: combined after the loop.
      const BestAxis lane = BestReduceLane(statement);
      if (lane.range == nullptr || lane.score <= 0) continue;
      const int64_t lanes = std::min(vector, lane.range->range_size());
      if (PadAndApply(s, ActionKind::kUnroll, lane.range, lanes)) return true;
      continue;
    }
    if (statement.node->op == Op::kStore && group.HasProduct(statement)) continue;
    const UOp* lane = LaneAxis(group, statement);
    if (lane == nullptr) continue;
    const int64_t lanes = LaneCount(lane->range_size(), vector, product, decisions);
    if (PadAndApply(s, ActionKind::kUpcast, lane, lanes)) return true;
  }
  return false;
}

void AddGroupLanes(Scheduler& s, Decisions& decisions) {
  while (AddLanes(s, decisions)) {
  }
}

// Where a loop of the group belongs: outside, a block of rows, the columns of a product, a tile of
// rows, what is done with a tile. So a panel of columns stays in the first-level cache for all
// tiles of a block.
int PlaceOf(const Group& group, const UOp* range, const UOp* block) {
  if (Contains(group.shared, range)) {
    if (!group.IsRows(range)) return 0;
    return range == block ? 1 : 3;
  }
  for (const StatementAccesses& s : group.statements) {
    const bool columns = s.node->op == Op::kReduce && group.IsProduct(s) &&
                         (group.sets.Of(s.node) & group.sets.Bit(range)) != 0;
    if (columns) return 2;
  }
  return 4;
}

// Puts the loops into the order of PlaceOf by exchanging them.
void OrderLoops(Scheduler& s) {
  const Group group(s);
  // Of the loops over rows the one with the longest steps.
  const UOp* block = nullptr;
  int64_t longest = 0;
  const std::vector<Temporary> temporaries = FindTemporaries(s.kernel());
  for (const UOp* r : group.shared) {
    if (IsRegisterAxis(r->range_type()) || r->range_type() == AxisType::kThread) continue;
    if (!group.IsRows(r)) continue;
    const int64_t step = ToLinear(temporaries[0].accesses[0]->src(1)).CoefficientOf(r);
    if (step > longest) block = r;
    longest = std::max(longest, step);
  }
  std::vector<int> places;
  for (const Axis& a : s.axes()) {
    if (IsRegisterAxis(a.type)) break;
    places.push_back(a.type == AxisType::kThread ? -1 : PlaceOf(group, a.range, block));
  }
  for (size_t to = 0; to < places.size(); ++to) {
    const size_t from = static_cast<size_t>(
        std::min_element(places.begin() + static_cast<int64_t>(to), places.end()) - places.begin());
    if (places[from] == places[to]) continue;
    if (!Try(s, ActionKind::kSwap, static_cast<int>(to), static_cast<int64_t>(from))) return;
    std::swap(places[from], places[to]);
  }
}

// A block of rows whose temporaries stay in the second-level cache. What the rows share is packed
// outside all of them.
void TileGroup(Scheduler& s, Decisions& decisions) {
  const Group group(s);
  if (group.rows == nullptr || group.rows->range_type() != AxisType::kLoop) return;
  const int64_t tiles = group.rows->range_size();
  int64_t amount = 1;
  if (WantsBlocks(s, group)) amount = std::min(TilesInCache(s, BytesOfTile(s, group)), tiles);
  while (amount > 1 && tiles % amount != 0) --amount;
  std::vector<int64_t> amounts = {amount};
  for (int64_t other : {1, 2, 4, 8}) {
    if (other != amount && tiles % other == 0) amounts.push_back(other);
  }
  amount = decisions.Pick("tiles", amounts);
  if (amount > 1 && amount < tiles) {
    Try(s, ActionKind::kLocal, AxisNumber(s, group.rows), amount);
  }
  // What is left of the loop is the longest loop over rows that is not LOCAL.
  const Group tiled(s);
  for (const UOp* r : tiled.shared) {
    if (r->range_type() != AxisType::kLoop || !tiled.IsRows(r)) continue;
    Try(s, ActionKind::kLocal, AxisNumber(s, r), 0);
    break;
  }
  OrderLoops(s);
}

constexpr std::array<HeuristicStep, 4> kGroupSteps = {{
    {"group-threads", "divide an outer loop, or the rows, among the cores", DivideGroup},
    {"group-rows", "the same rows of all statements in registers", TileGroupRows},
    {"group-lanes", "lanes along the columns of each statement", AddGroupLanes},
    {"group-tile", "blocks of rows that stay in cache, and operands packed outside them",
     TileGroup},
}};

}  // namespace

std::span<const HeuristicStep> GroupHeuristicSteps() { return kGroupSteps; }

}  // namespace quern
