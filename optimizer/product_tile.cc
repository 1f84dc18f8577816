#include "optimizer/product_tile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "optimizer/best_first.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/reads_in_place.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// Cycles for one element. An operand that is contiguous along another axis is packed by blocks,
// which use each line of the cache that they read; any other one by elements from lines far apart.
constexpr double kPackedElement = 1.0, kPackedScatteredElement = 8.0;
constexpr double kPackedContiguousElement = 0.1, kPackedFarElement = 0.6;
// Reading lanes where they lie for the first time, from beyond the second-level cache or from it:
// short pieces of rows that are far apart. Divided by the registers that a piece fills.
constexpr double kFarElementInPlace = 1.2, kElementInPlace = 0.4;
constexpr double kGatheredElement = 1.5;
constexpr double kStoredApartElement = 0.5, kStoredTransposedElement = 0.25;
// Where each lane is on a page of its own.
constexpr double kStoredFarElement = 8;
constexpr int64_t kPageBytes = 4096;
// What loads cost beside multiply-adds that hide them: a tile with fewer of them is better. Those
// of the lanes walk through a panel that the second-level cache may hold, or through one that is
// not packed, from page to page; those of the rows come back to the same line.
constexpr double kHiddenLoad = 0.1, kHiddenLaneLoad = 0.3, kHiddenFarLoad = 0.75;
constexpr double kLoadsPerCycle = 2, kMultiplyAddsPerCycle = 2;
// A step from row to row that is no longer comes in time, if at least three follow.
constexpr int64_t kNearBytes = 512, kLeastRun = 3;
// Reading what does not stay in the second-level cache between tiles, beside multiply-adds.
constexpr double kFarByte = 1.0 / 64;
// Reading an operand of the rows when each step of the reduction goes to another page.
constexpr double kRowApart = 0.5;  // cycles
// An element of a group that a matrix instruction sums and that is put together for each row,
// because its elements lie apart and it is used by one tile only.
constexpr double kRowGroupElement = 4;
// Rows that lie close are a little better: they share cache lines, or pages. For each doubling.
constexpr double kRowDistance = 0.003;
// Masks at the ends, and code for them, are worth it for what they save beyond this.
constexpr double kPadding = 1.02;
// A tile of three axes leaves out less of what lies beyond borders.
constexpr double kThirdAxis = 1.1;
// Independent sums that keep two units of four cycles' latency busy, and some for what comes late.
constexpr double kLeastSums = 10;

int64_t RoundUp(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

// How one load of the product moves.
struct Operand {
  const UOp* index = nullptr;
  double elements = 1;      // different ones, all loops together
  bool reused = false;      // along some output loop: it may be packed
  bool in_order = false;    // a step of some reduced axis stays near
  bool constant = false;    // packed ahead, which costs nothing here
  bool contiguous = false;  // along any axis
};

struct Problem {
  const Scheduler& scheduler;
  const RangeSets& sets;
  const StatementAccesses& reduce;
  const StatementAccesses* store;
  std::vector<const UOp*> outputs;
  std::vector<Operand> operands;
  double outputs_volume = 1, depth = 1;
  int64_t vector = 1;
  const UOp* group = nullptr;  // the axis that a matrix instruction sums
  int64_t sum_loops = 0;
};

AccessPattern PatternOf(const Problem& p, const Operand& operand, const UOp* range) {
  return PatternAlong({p.reduce.node, {operand.index}, nullptr}, range);
}

Problem Describe(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                 const StatementAccesses* store) {
  Problem p{s, sets, reduce, store, {}, {}, 1, 1, VectorLanes(s, reduce), nullptr, 0};
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    p.outputs_volume *= static_cast<double>(r->range_size());
    if (r->range_type() == AxisType::kLoop && r->range_size() >= 2) p.outputs.push_back(r);
  }
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() == AxisType::kWarp) {
      p.group = r;  // Summed by one instruction.
    } else {
      p.depth *= static_cast<double>(r->range_size());
      ++p.sum_loops;
    }
  }
  for (const UOp* load : reduce.loads) {
    Operand& operand = p.operands.emplace_back();
    operand.index = load;
    for (const UOp* r : sets.Members(sets.Of(load))) {
      operand.elements *= static_cast<double>(r->range_size());
    }
    for (const UOp* r : p.outputs) operand.reused |= !sets.Depends(load, r);
    for (const UOp* r : p.outputs) operand.contiguous |= PatternOf(p, operand, r).contiguous > 0;
    operand.constant =
        load->src(0)->op == Op::kParam && IsConstantSlot(s.kernel(), load->src(0)->slot());
    const LinearForm form = ToLinear(load->src(1));
    for (const UOp* r : reduce.node->src().subspan(1)) {
      const int64_t step = std::abs(form.CoefficientOf(r)) * ByteSize(load->dtype.scalar);
      operand.contiguous |= form.CoefficientOf(r) == 1;
      operand.in_order |= step != 0 && step < kNearBytes && r->range_size() >= kLeastRun;
    }
  }
  return p;
}

double BytesOf(const Operand& operand) {
  const int64_t size = operand.index->src(0)->buffer_size();
  return std::min(operand.elements, static_cast<double>(size)) *
         ByteSize(operand.index->dtype.scalar);
}

bool IsFar(const Problem& p, const Operand& operand) {
  return BytesOf(operand) > static_cast<double>(p.scheduler.target().l2_bytes);
}

// Whether the groups of an operand, which a matrix instruction sums, lie apart.
bool HasScatteredGroups(const Problem& p, const Operand& operand) {
  return p.group != nullptr && p.sets.Depends(operand.index, p.group) &&
         PatternOf(p, operand, p.group).contiguous == 0;
}

// Whether the lanes of an operand are read where it lies, and do not stay in a cache all together.
bool WalksInPlace(const Problem& p, const ProductTile& tile, const Operand& operand) {
  if (!operand.reused || operand.constant || tile.row_axis == nullptr) return false;
  if (HasScatteredGroups(p, operand)) return false;
  if (p.sets.Depends(operand.index, tile.row_axis)) return false;
  if (PatternOf(p, operand, tile.lane_axis).contiguous == 0) return false;
  const Target& target = p.scheduler.target();
  if (StaysInCache(target, p.sets, p.reduce, operand.index)) return false;
  const int64_t row_tiles = RoundUp(tile.row_axis->range_size(), tile.rows) / tile.rows;
  return ReadsInPlace(target, p.reduce, operand.index, tile.lanes, row_tiles);
}

// Whether a packed panel comes from beyond the second-level cache each time. A sum in one loop is
// cut into blocks instead (BlockSums).
bool IsFarPanel(const Problem& p, const ProductTile& tile, const Operand& operand) {
  const double bytes = p.depth * static_cast<double>(tile.lanes) *
                       static_cast<double>(ByteSize(operand.index->dtype.scalar));
  return p.sum_loops > 1 && bytes > static_cast<double>(p.scheduler.target().l2_bytes);
}

// Whether more than one tile reads the same elements of an operand.
bool IsReusedByTiles(const Problem& p, const ProductTile& tile, const Operand& operand) {
  return std::any_of(p.outputs.begin(), p.outputs.end(), [&](const UOp* r) {
    const int64_t amount = r == tile.lane_axis    ? tile.lanes
                           : r == tile.row_axis   ? tile.rows
                           : r == tile.other_axis ? tile.others
                                                  : 1;
    return r->range_size() > amount && !p.sets.Depends(operand.index, r);
  });
}

// How many rows of a tile have elements of their own of an operand.
double OwnRows(const Problem& p, const ProductTile& tile, const Operand& operand) {
  int64_t rows = 1;
  const auto follow = [&](const UOp* axis, int64_t amount) {
    if (axis != nullptr && p.sets.Depends(operand.index, axis)) rows *= amount;
  };
  follow(tile.row_axis, tile.rows);
  follow(tile.other_axis, tile.others);
  return static_cast<double>(rows);
}

// Instructions that read the operands in one step of the reduction.
struct StepLoads {
  double rows = 0, lanes = 0, far = 0;
};
StepLoads LoadsOfStep(const Problem& p, const ProductTile& tile, double vectors) {
  StepLoads loads;
  for (const Operand& operand : p.operands) {
    const double copies = OwnRows(p, tile, operand);
    if (!p.sets.Depends(operand.index, tile.lane_axis)) {
      loads.rows += copies;
      continue;
    }
    const AccessPattern along = PatternOf(p, operand, tile.lane_axis);
    if (IsFar(p, operand) && (WalksInPlace(p, tile, operand) || IsFarPanel(p, tile, operand))) {
      loads.far += copies * vectors;
    } else if (along.contiguous > 0 || operand.reused) {
      loads.lanes += copies * vectors;
      const bool masked =
          operand.index->source_count == 3 && p.sets.Depends(operand.index->src(2), tile.lane_axis);
      if (masked) loads.lanes += copies * vectors;
    } else {
      loads.lanes += copies * static_cast<double>(tile.lanes) * kGatheredElement * kLoadsPerCycle;
    }
  }
  return loads;
}

// Cycles that a step waits for memory.
double WaitsOfStep(const Problem& p, const ProductTile& tile) {
  double waits = 0;
  for (const Operand& operand : p.operands) {
    if (p.sets.Depends(operand.index, tile.lane_axis)) continue;
    const double rows = OwnRows(p, tile, operand);
    if (!operand.in_order) waits += kRowApart * rows;
    if (HasScatteredGroups(p, operand) && !IsReusedByTiles(p, tile, operand)) {
      waits += kRowGroupElement * rows * static_cast<double>(p.group->range_size());
    }
    if (tile.row_axis == nullptr || !p.sets.Depends(operand.index, tile.row_axis)) continue;
    const int64_t stride = ToLinear(operand.index->src(1)).CoefficientOf(tile.row_axis);
    const int64_t bytes = std::abs(stride) * ByteSize(operand.index->dtype.scalar);
    waits += kRowDistance * rows * std::log2(1 + static_cast<double>(bytes));
  }
  return waits;
}

// Cycles for reading an operand again for each tile of columns, if no cache keeps it that long. One
// that is no walk along the reduced axes is packed by blocks that do stay (TileCaches).
double FarReads(const Problem& p, const ProductTile& tile, const Operand& operand) {
  bool walks = false;
  for (const UOp* r : p.reduce.node->src().subspan(1)) {
    walks |= PatternOf(p, operand, r).contiguous > 0;
  }
  if (!walks) return 0;
  if (!IsFar(p, operand)) return 0;
  const int64_t passes = RoundUp(tile.lane_axis->range_size(), tile.lanes) / tile.lanes;
  return BytesOf(operand) * static_cast<double>(passes) * kFarByte;
}

bool AnyWalksInPlace(const Problem& p, const ProductTile& tile) {
  return std::any_of(p.operands.begin(), p.operands.end(),
                     [&](const Operand& operand) { return WalksInPlace(p, tile, operand); });
}

double Estimate(const Problem& p, const ProductTile& tile) {
  const double vectors =
      static_cast<double>(RoundUp(tile.lanes, p.vector)) / static_cast<double>(p.vector);
  const double sums = vectors * static_cast<double>(tile.rows * tile.others);
  const StepLoads loads = LoadsOfStep(p, tile, vectors);
  const double all_loads = loads.rows + loads.lanes + loads.far;
  const double hidden =
      kHiddenLoad * loads.rows + kHiddenLaneLoad * loads.lanes + kHiddenFarLoad * loads.far;
  const double step = std::max({sums / kMultiplyAddsPerCycle, all_loads / kLoadsPerCycle,
                                kLeastSums / kMultiplyAddsPerCycle}) +
                      hidden / kLoadsPerCycle + WaitsOfStep(p, tile);
  double tiles = p.outputs_volume;
  const auto pad = [&](const UOp* axis, int64_t amount) {
    const int64_t size = axis->range_size();
    tiles *= static_cast<double>(RoundUp(size, amount)) / static_cast<double>(size * amount);
    if (size % amount != 0) tiles *= kPadding;
  };
  pad(tile.lane_axis, tile.lanes);
  if (tile.row_axis != nullptr) pad(tile.row_axis, tile.rows);
  if (tile.other_axis != nullptr) pad(tile.other_axis, tile.others);
  double cycles = tiles * p.depth * step;
  if (tile.other_axis != nullptr) cycles *= kThirdAxis;
  for (const Operand& operand : p.operands) {
    if (operand.reused && !p.sets.Depends(operand.index, tile.lane_axis)) {
      cycles += FarReads(p, tile, operand);
      if (HasScatteredGroups(p, operand) && IsReusedByTiles(p, tile, operand)) {
        cycles += operand.elements * kPackedElement;
      }
      continue;
    }
    if (!operand.reused || operand.constant) continue;
    const bool far = IsFar(p, operand);
    if (WalksInPlace(p, tile, operand)) {
      cycles += operand.elements * (far ? kFarElementInPlace : kElementInPlace) / vectors;
      continue;
    }
    const bool apart = PatternOf(p, operand, tile.lane_axis).contiguous == 0;
    double packed = operand.contiguous ? kPackedElement : kPackedScatteredElement;
    if (p.group != nullptr && PatternOf(p, operand, p.group).contiguous > 0) {
      packed /= static_cast<double>(p.group->range_size());  // Whole groups move.
    }
    if (!apart) packed = far ? kPackedFarElement : kPackedContiguousElement;
    cycles += operand.elements * packed;
  }
  if (p.store != nullptr && !PatternAlong(*p.store, tile.lane_axis).store_contiguous) {
    // A tile whose rows are neighbours in memory is turned around in registers.
    const bool transposed =
        tile.row_axis != nullptr && PatternAlong(*p.store, tile.row_axis).store_contiguous;
    const int64_t stride = ToLinear(p.store->node->src(0)->src(1)).CoefficientOf(tile.lane_axis);
    const int64_t bytes = std::abs(stride) * ByteSize(p.store->node->src(1)->dtype.scalar);
    const double apart = bytes < kPageBytes ? kStoredApartElement : kStoredFarElement;
    cycles += p.outputs_volume * (transposed ? kStoredTransposedElement : apart);
  }
  return cycles;
}

// Rows beyond these leave no registers for the operands.
int64_t MostRows(const Problem& p, int64_t lanes) {
  const int64_t vectors = RoundUp(lanes, p.vector) / p.vector;
  return (p.scheduler.target().vector_registers - vectors - 1) / vectors;
}

// Of tiles sorted by their estimates, those that a search should see: a few rows for each pair of
// axes and number of lanes, and none that is far behind.
std::vector<ProductTile> Spread(const std::vector<ProductTile>& sorted) {
  constexpr size_t kMost = 24;
  constexpr int kMostAlike = 3;
  constexpr double kFarBehind = 2;
  std::vector<ProductTile> spread;
  for (const ProductTile& tile : sorted) {
    if (spread.size() == kMost || tile.cycles > kFarBehind * sorted[0].cycles) break;
    const auto alike = std::count_if(spread.begin(), spread.end(), [&](const ProductTile& t) {
      return t.lane_axis == tile.lane_axis && t.lanes == tile.lanes &&
             t.row_axis == tile.row_axis && t.other_axis == tile.other_axis;
    });
    if (alike < kMostAlike) spread.push_back(tile);
  }
  return spread;
}

// The tiles with a few rows along a third axis, too, for one that holds its row axis whole and has
// few sums all the same.
template <typename Consider>
void WithOtherRows(const Problem& p, ProductTile tile, Consider consider) {
  const int64_t vectors = RoundUp(tile.lanes, p.vector) / p.vector;
  if (static_cast<double>(vectors * tile.rows) >= kLeastSums) return;
  for (const UOp* other : p.outputs) {
    if (other == tile.lane_axis || other == tile.row_axis) continue;
    for (int64_t others : {2, 3, 4}) {
      if (tile.rows * others > MostRows(p, tile.lanes)) break;
      if (other->range_size() % others != 0 || other->range_size() == others) continue;
      tile.other_axis = other;
      tile.others = others;
      consider(tile);
    }
  }
}

}  // namespace

std::vector<ProductTile> ProductTiles(const Scheduler& s, const RangeSets& sets,
                                      const StatementAccesses& reduce,
                                      const StatementAccesses* store) {
  const Problem p = Describe(s, sets, reduce, store);
  std::vector<ProductTile> tiles;
  const auto consider = [&](ProductTile tile) {
    tile.cycles = Estimate(p, tile);
    tiles.push_back(tile);
  };
  for (const UOp* lane : p.outputs) {
    bool possible = true;
    for (const Operand& operand : p.operands) {
      possible &= PatternOf(p, operand, lane).gathered == 0;
    }
    if (!possible) continue;
    const int64_t size = lane->range_size();
    double far_reads = 0;
    for (const Operand& operand : p.operands) {
      const bool again = operand.reused && !p.sets.Depends(operand.index, lane);
      if (again) far_reads += FarReads(p, {.lane_axis = lane, .lanes = 2 * p.vector}, operand);
    }
    // One, two or four registers, the last one padded; a shorter axis goes in whole. What fills a
    // register and a half is split badly by LLVM.
    for (int64_t lanes : {2 * p.vector, 4 * p.vector, p.vector, size}) {
      const bool whole = size <= p.vector || size == 2 * p.vector || size == 4 * p.vector;
      if (lanes == size ? !whole : lanes >= size + p.vector) continue;
      // Matrix instructions fill whole registers.
      if (p.group != nullptr && lanes % p.vector != 0) continue;
      // Four registers save reading far operands again, or short reads of rows far apart, and
      // nothing else.
      const bool wide = lanes == 4 * p.vector && far_reads == 0;
      if (!wide) consider({.lane_axis = lane, .lanes = lanes});
      for (const UOp* row : p.outputs) {
        if (row == lane) continue;
        for (int64_t rows = std::min(MostRows(p, lanes), row->range_size()); rows >= 2; --rows) {
          const ProductTile tile = {
              .lane_axis = lane, .lanes = lanes, .row_axis = row, .rows = rows};
          if (!wide || AnyWalksInPlace(p, tile)) consider(tile);
          if (rows == row->range_size()) WithOtherRows(p, tile, consider);
        }
      }
    }
  }
  return Spread(BestFirst(tiles, tiles.size(), [](const ProductTile& t) { return t.cycles; }));
}

}  // namespace quern
