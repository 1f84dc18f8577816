#include <algorithm>
#include <cstdlib>

#include "codegen/stream_stores.h"
#include "optimizer/best_first.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/product_tile.h"
#include "rewrite/kernel_flags.h"

namespace quern {
namespace {

// Independent sums that hide the latency of one.
constexpr int64_t kSumRegisters = 4;

// Cuts a long reduction that has too few outputs to keep the cores busy.
void SplitForThreads(Scheduler& s) {
  const int64_t cores = s.target().cores;
  if (!PaysThreads(s)) return;
  double outputs = 1;
  for (const Axis& a : s.axes()) {
    if (!a.reduce) outputs *= static_cast<double>(a.size);
  }
  if (outputs >= static_cast<double>(cores)) return;
  for (size_t i = 0; i < s.reduce_axes().size(); ++i) {
    const int axis = s.reduce_axes()[i];
    if (s.axes()[axis].size < 4096) continue;
    Scheduler trial = s;
    const int64_t vectors = cores * kSumRegisters * s.target().vector_bytes;
    if (s.axes()[axis].size % cores != 0 && !PadTo(trial, s.axes()[axis].range, vectors)) continue;
    if (!Try(trial, ActionKind::kGroupTop, static_cast<int>(i), cores)) continue;
    if (Try(trial, ActionKind::kThread, axis, cores)) s = std::move(trial);
    return;
  }
}

// The output loops along which some operand is used again, innermost first: those of a tile.
std::vector<const UOp*> SharingLoops(const RangeSets& sets, const StatementAccesses& reduce) {
  std::vector<const UOp*> loops;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    if (PatternAlong(reduce, r).fixed > 0) loops.push_back(r);
  }
  std::reverse(loops.begin(), loops.end());
  if (loops.size() > 2) loops.resize(2);
  return loops;
}

// Outputs along the two loops that are summed side by side; 1 where there is no loop.
struct DotTile {
  int64_t first = 1;
  int64_t second = 1;
  bool operator==(const DotTile&) const = default;
};

// Up to four by four of them, which use each loaded vector several times and hide the latency of
// the sums; then others that fit the registers, those with the fewest loads first. The best takes a
// loop `whole` only if it is told to.
std::vector<DotTile> DotTiles(const Target& target, const std::vector<const UOp*>& loops,
                              bool whole) {
  const auto size = [&](size_t i) { return i < loops.size() ? loops[i]->range_size() : 1; };
  const auto best = [&](size_t i) {
    const int64_t amount = Dividing(size(i), {4, 3, 2});
    return amount == 0 || (amount == size(i) && !whole) ? 1 : amount;
  };
  std::vector<DotTile> others;
  for (int64_t first : {1, 2, 3, 4, 6, 8}) {
    for (int64_t second : {1, 2, 3, 4, 6, 8}) {
      if (size(0) % first != 0 || size(1) % second != 0) continue;
      if (first * second + std::min(first, second) + 1 > target.vector_registers) continue;
      others.push_back({first, second});
    }
  }
  std::vector<DotTile> tiles = {{best(0), best(1)}};
  std::erase(others, tiles[0]);
  constexpr size_t kMost = 12;
  others = BestFirst(others, kMost, [](const DotTile& t) {
    return static_cast<double>(t.first + t.second) / static_cast<double>(t.first * t.second);
  });
  tiles.insert(tiles.end(), others.begin(), others.end());
  return tiles;
}

// A sum of products with lanes along one of its reduced axes.
struct DotProducts {
  const UOp* lane = nullptr;  // nullptr: no axis will do
  double cycles = 0;          // to compare with ProductTile::cycles
};

// What they cost with lanes along `lane`; below 0: that is not possible. An operand that lies apart
// there is packed, once if it is constant.
double DotCycles(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                 const UOp* lane) {
  // Adding the lanes of a sum; copying an element that lies apart along the lanes.
  constexpr double kAddedLanes = 6, kPackedElement = 8;
  constexpr double kPerCycle = 2;  // loads, and multiply-adds
  constexpr double kLeastSums = 10;
  constexpr int64_t kLeastReuse = 32;
  const auto vector = static_cast<double>(VectorLanes(s, reduce));
  const std::vector<const UOp*> loops = SharingLoops(sets, reduce);
  if (loops.empty()) return -1;
  const DotTile tile = DotTiles(s.target(), loops, /*whole=*/true)[0];
  double outputs = 1;
  double depth = 1;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    outputs *= static_cast<double>(r->range_size());
  }
  for (const UOp* r : reduce.node->src().subspan(1)) depth *= static_cast<double>(r->range_size());
  double loads = 0;
  double cycles = outputs * kAddedLanes;
  for (const UOp* load : reduce.loads) {
    const AccessPattern along = PatternAlong({reduce.node, {load}, nullptr}, lane);
    if (along.contiguous + along.strided == 0) return -1;
    double copies = 1;
    if (sets.Depends(load, loops[0])) copies *= static_cast<double>(tile.first);
    if (loops.size() > 1 && sets.Depends(load, loops[1])) {
      copies *= static_cast<double>(tile.second);
    }
    loads += copies;
    if (along.strided == 0) continue;
    if (TimesUsed(sets, reduce, load) < kLeastReuse) return -1;
    const bool constant =
        load->src(0)->op == Op::kParam && IsConstantSlot(s.kernel(), load->src(0)->slot());
    if (constant) continue;
    double elements = 1;
    for (const UOp* r : sets.Members(sets.Of(load))) {
      elements *= static_cast<double>(r->range_size());
    }
    cycles += elements * kPackedElement;
  }
  const auto sums = static_cast<double>(tile.first * tile.second);
  const double step = std::max({sums, loads, kLeastSums}) / kPerCycle;
  return cycles + outputs / sums * depth / vector * step;
}

DotProducts BestDotProducts(const Scheduler& s, const RangeSets& sets,
                            const StatementAccesses& reduce) {
  DotProducts best;
  if (reduce.loads.size() < 2) return best;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() != AxisType::kReduce || r->range_size() % VectorLanes(s, reduce) != 0) {
      continue;
    }
    const double cycles = DotCycles(s, sets, reduce, r);
    if (cycles < 0 || (best.lane != nullptr && cycles >= best.cycles)) continue;
    best = {r, cycles};
  }
  return best;
}

// Lanes along a reduced axis for a sum of products that would have them along its outputs: where
// that is clearly better, as with few outputs along each axis. Returns whether it was done.
bool SumProductsInLanes(Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                        const StatementAccesses* store, Decisions& decisions) {
  constexpr double kClearly = 0.7;
  const DotProducts dots = BestDotProducts(s, sets, reduce);
  if (dots.lane == nullptr) return false;
  const std::vector<ProductTile> tiles = ProductTiles(s, sets, reduce, store);
  const bool better = tiles.empty() || dots.cycles < kClearly * tiles[0].cycles;
  if (!decisions.Confirm("sum-lanes", better)) return false;
  return Try(s, ActionKind::kUnroll, ReduceNumber(s, dots.lane), VectorLanes(s, reduce));
}

// Whether SumProductsInLanes has been here: an operand lies apart along the lanes.
bool HasLanesApart(const StatementAccesses& reduce) {
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() == AxisType::kUnroll && PatternAlong(reduce, r).strided > 0) return true;
  }
  return false;
}

// Elements that lanes along a reduced axis take, best first. Some padding costs less than sums that
// wait for each other, or many short steps.
std::vector<int64_t> SumLanes(int64_t size, int64_t vector, int64_t most) {
  constexpr int64_t kMostPadding = 4, kMostShort = 3;         // of so many parts, one
  const bool exact = size % vector == 0 && size <= 2 * most;  // few steps of one vector will do
  std::vector<int64_t> ways;
  for (int64_t lanes = most; lanes >= vector; lanes /= 2) {
    const int64_t steps = (size + lanes - 1) / lanes;
    const int64_t padding = steps * lanes - size;
    if (lanes > size || padding * (steps <= 2 ? kMostShort : kMostPadding) > size) continue;
    if (exact && padding > 0) continue;
    ways.push_back(lanes);
  }
  return ways;
}

// How much a reduction to one value reads of its only operand; 0 if it is another kind.
int64_t BytesToOneValue(const RangeSets& sets, const StatementAccesses& reduce) {
  if (reduce.loads.size() != 1 || sets.Of(reduce.node) != 0) return 0;
  int loops = 0;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    loops += r->range_type() == AxisType::kThread ? 0 : 1;
  }
  if (loops != 1) return 0;
  const UOp* buffer = reduce.loads[0]->src(0);
  return buffer->buffer_size() * ByteSize(buffer->dtype.scalar);
}

// Lanes along `loop`, in each of so many parts of it side by side.
bool UnrollStreams(Scheduler& s, const UOp* loop, int64_t streams, int64_t lanes) {
  Scheduler trial = s;
  if (!PadTo(trial, loop, streams * lanes)) return false;
  const int number = ReduceNumber(s, loop);
  if (!Try(trial, ActionKind::kGroupTop, number, streams) ||
      !Try(trial, ActionKind::kUnroll, number, 0) ||
      !Try(trial, ActionKind::kUnroll, number, lanes)) {
    return false;
  }
  s = std::move(trial);
  return true;
}

// What comes from memory comes faster from two places at once than from one: each is fetched ahead
// by itself. For reductions to one value, which have no rows to take side by side.
bool ReduceInStreams(Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                     const UOp* lane, Decisions& decisions) {
  constexpr int64_t kFarCaches = 4;
  const int64_t bytes = BytesToOneValue(sets, reduce);
  if (bytes <= kFarCaches * s.target().l2_bytes) return false;
  const std::vector<int64_t> ways = {2, 4, 1};
  const int64_t streams = decisions.Pick("streams", ways);
  if (streams == 1) return false;
  const int64_t vector = VectorLanes(s, reduce);
  const bool from_memory = bytes >= StreamBytes(s.target());
  return UnrollStreams(s, lane, streams, (from_memory ? 2 : kSumRegisters) * vector);
}

}  // namespace

// Reductions whose operands are contiguous along the reduced axis: lanes there, combined at the
// end.
void GroupReductions(Scheduler& s, Decisions& decisions) {
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
      const bool suits = lane.range != nullptr && lane.score > 0 && lane.score > output.score;
      // The operands of a product are worth packing for lanes of outputs.
      if (IsProduct(sets, reduce) || !suits) {
        changed = SumProductsInLanes(s, sets, reduce, store, decisions);
        if (changed) break;
        continue;
      }
      changed = ReduceInStreams(s, sets, reduce, lane.range, decisions);
      if (changed) break;
      const int64_t vector = VectorLanes(s, reduce);
      const int64_t size = lane.range->range_size();
      // Independent sums hide the latency of one: several registers here, unless a tile of outputs
      // (TileDotProducts) will give them.
      int64_t most = kSumRegisters * vector;
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
        if (PatternAlong(reduce, r).fixed > 0) most = std::max(vector, most / 2);
      }
      const std::vector<int64_t> ways = SumLanes(size, vector, most);
      int64_t amount = 0;
      if (!ways.empty()) {
        amount = decisions.Pick("sum-registers", ways);
      }
      if (amount == 0 && size >= 2 * vector) {
        if (!Try(s, ActionKind::kPadTo, AxisNumber(s, lane.range), vector)) continue;
        changed = true;  // Numbers and sizes are new; the next turn unrolls it.
        break;
      }
      if (amount == 0) amount = Dividing(size, {vector / 2, vector / 4});
      if (amount == 0 && size <= vector) amount = size;
      if (amount < 2) continue;
      changed = PadAndApply(s, ActionKind::kUnroll, lane.range, amount);
      if (changed) break;
    }
  }
}

// Outputs of a reduction with lanes along the reduced axis: a tile of them in registers.
void TileDotProducts(Scheduler& s, Decisions& decisions) {
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce) continue;
    bool over_registers = false;
    for (const UOp* r : reduce.node->src().subspan(1)) {
      over_registers |= IsRegisterAxis(r->range_type()) && r->range_type() != AxisType::kWarp;
    }
    if (!over_registers) continue;
    const std::vector<const UOp*> loops = SharingLoops(sets, reduce);
    if (loops.empty()) continue;
    const std::vector<DotTile> tiles = DotTiles(s.target(), loops, /*whole=*/HasLanesApart(reduce));
    const DotTile tile = decisions.Pick("dots", tiles);
    // Innermost first, so that the numbers of the others do not change.
    std::vector<int> numbers;
    for (const UOp* r : loops) numbers.push_back(AxisNumber(s, r));
    if (tile.first > 1) Try(s, ActionKind::kUpcast, numbers[0], tile.first);
    if (tile.second > 1 && numbers.size() > 1) {
      Try(s, ActionKind::kUpcast, numbers[1], tile.second);
    }
    return;
  }
}

}  // namespace quern
