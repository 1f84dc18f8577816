#include <algorithm>
#include <cstdlib>

#include "codegen/matrix_instructions.h"
#include "optimizer/cpu_traits.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/reads_in_place.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// Steps of a sum from which reading its panels in order pays for packing them; and from which it
// does where they would be gathered.
constexpr int64_t kLeastDepth = 64, kLeastDepthApart = 8;
// Tiles that read a panel again, from which packing it may pay.
constexpr int64_t kLeastUses = 8;
// The same for operands that packing widens, and for rows that come from far away.
constexpr int64_t kLeastWidened = 2, kLeastFar = 16;

// How an operand is read by lanes along axes of a type.
struct LaneUse {
  bool has_lanes = false;
  // In memory; each tile would gather them, or put together what a matrix instruction sums in a
  // lane. Packed they lie side by side.
  bool apart = false;
};

LaneUse LanesOf(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                const UOp* load, AxisType type) {
  LaneUse use;
  for (const UOp* r : sets.Members(sets.Of(load))) {
    // Rows beside the lanes may be as many, but seldom fill whole registers.
    const bool lanes = r->range_type() == type && r->range_size() % VectorLanes(s, reduce) == 0;
    if (!lanes && r->range_type() != AxisType::kWarp) continue;
    use.has_lanes |= lanes;
    use.apart |= PatternAlong({reduce.node, {load}, nullptr}, r).strided > 0;
  }
  return use;
}

// Whether an operand lies apart along the lanes. Rows may fill registers, too: what is contiguous
// along one of the axes has its lanes there.
bool MustBePacked(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce) {
  bool apart = false;
  bool contiguous = false;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (r->range_type() != AxisType::kUpcast || r->range_size() % VectorLanes(s, reduce) != 0) {
      continue;
    }
    const AccessPattern along = PatternAlong(reduce, r);
    apart |= along.strided > 0;
    contiguous |= along.contiguous > 0;
  }
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() == AxisType::kWarp && PatternAlong(reduce, r).strided > 0) return true;
  }
  return apart && !contiguous;
}

// Whether an operand of the rows is no walk through memory along the reduced axes, in steps that
// stay in a line of the cache. A matrix instruction reads a group of neighbours at once, if they
// are neighbours.
bool LiesApart(const RangeSets& sets, const StatementAccesses& reduce, const UOp* load) {
  constexpr int64_t kShortStep = 16;  // bytes
  const LinearForm form = ToLinear(load->src(1));
  bool walks = false;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    const int64_t step = form.CoefficientOf(r);
    if (r->range_type() == AxisType::kWarp && sets.Depends(load, r)) return step != 1;
    walks |= step != 0 && std::abs(step) * ByteSize(load->dtype.scalar) <= kShortStep;
  }
  return !walks;
}

// Whether an operand would be widened for each use, and is once if it is packed.
bool IsWidened(const Scheduler& s, const StatementAccesses& reduce, const UOp* load) {
  return PackedType(reduce.node, load, s.target()) != load->dtype.scalar;
}

// The longest output loop along which the operand of the rows, which depends on `rows`, is reused.
const UOp* ColumnsLoop(const RangeSets& sets, const StatementAccesses& reduce, const UOp* rows) {
  const UOp* longest = nullptr;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (r == rows || r->range_type() != AxisType::kLoop) continue;
    bool reused = false;
    for (const UOp* load : reduce.loads) {
      reused |= sets.Depends(load, rows) && !sets.Depends(load, r);
    }
    if (reused && (longest == nullptr || r->range_size() > longest->range_size())) longest = r;
  }
  return longest;
}

// Whether an operand stays in the first-level cache between rows of tiles.
bool FitsFirstCache(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
                    const UOp* load) {
  return OperandBytes(sets, reduce, load) <= s.target().l1_bytes * 3 / 2;
}

// How much of a loop becomes the tile: all of it (0), unless that leaves no loop to divide among
// the cores. Then each of them gets a share, for which the loop may be padded. `other` becomes
// LOCAL, too, if it is an axis.
int64_t LocalAmount(Scheduler& s, int axis, int other) {
  const int64_t cores = s.target().cores;
  if (!PaysThreads(s)) return 0;
  for (int i = 0; i < static_cast<int>(s.axes().size()); ++i) {
    const Axis& a = s.axes()[i];
    const bool loop = !a.reduce && a.type == AxisType::kLoop;
    const bool divides = a.size % cores == 0 || a.size >= 4 * cores;  // with little to pad
    if (loop && i != axis && i != other && divides) return 0;
  }
  const int64_t size = s.axes()[axis].size;
  if (size < 4 * cores) return 0;
  if (size % cores != 0 && !Try(s, ActionKind::kPadTo, axis, cores)) return 0;
  return (size + cores - 1) / cores;
}

// Puts the loop over tiles of rows, which read `load` again, inside the loops that `load` follows,
// or outside of them.
void OrderRows(Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
               const UOp* load, const UOp* rows, bool inside) {
  const int rows_axis = AxisNumber(s, rows);
  int first = rows_axis;
  int last = rows_axis;
  for (const UOp* r : sets.Members(sets.Of(load))) {
    const bool loop = r->range_type() == AxisType::kLoop && r->range_size() >= 2;
    bool followed = true;  // As by a batch: its order does not matter.
    for (const UOp* other : reduce.loads) followed &= sets.Depends(other, r);
    if (!loop || followed) continue;
    first = std::min(first, AxisNumber(s, r));
    last = std::max(last, AxisNumber(s, r));
  }
  if (inside && last != rows_axis) Try(s, ActionKind::kSwap, rows_axis, last);
  if (!inside && first != rows_axis) Try(s, ActionKind::kSwap, first, rows_axis);
}

// After an operand was packed whose panels do not stay in the cache together: loops over rows that
// stand around the loops over panels, so that all panels come again for each of their iterations,
// change places with those if that moves fewer bytes.
void PanelsOutside(Scheduler& s, Decisions& decisions) {
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    for (const UOp* load : reduce.loads) {
      const UOp* panels = nullptr;  // the innermost loop over them
      int64_t count = 1;
      bool has_lanes = false;
      bool again = false;
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        const bool follows = sets.Depends(load, r);
        const bool upcast = r->range_type() == AxisType::kUpcast;
        has_lanes |= upcast && follows && r->range_size() >= VectorLanes(s, reduce);
        again |= r->range_type() == AxisType::kLocal && !follows;
        if (r->range_type() != AxisType::kLoop || !follows) continue;
        bool batch = true;
        for (const UOp* other : reduce.loads) batch &= sets.Depends(other, r);
        if (batch) continue;
        panels = r;
        count *= r->range_size();
      }
      if (!has_lanes || !again || panels == nullptr) continue;
      const int64_t bytes = OperandBytes(sets, reduce, load);
      if (bytes <= s.target().l2_bytes / 2) return;
      int64_t rows_bytes = 0;
      for (const UOp* other : reduce.loads) {
        if (other == load) continue;  // Neighbouring outputs read the same pixels.
        const int64_t all = other->src(0)->buffer_size() * ByteSize(other->dtype.scalar);
        rows_bytes += std::min(all, OperandBytes(sets, reduce, other));
      }
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        if (r->range_type() != AxisType::kLoop || sets.Depends(load, r)) continue;
        if (r->range_axis() > panels->range_axis()) continue;
        const bool pays = (count - 1) * rows_bytes < (r->range_size() - 1) * bytes;
        if (!decisions.Confirm("panels-outside", pays)) continue;
        if (Try(s, ActionKind::kSwap, AxisNumber(s, r), AxisNumber(s, panels))) {
          return PanelsOutside(s, decisions);  // There is one less of them.
        }
      }
      return;
    }
  }
}

// After an operand was packed: if all of its panels stay in the cache together, each tile of rows
// meets all of them before the next, so that rows are read and results are written once and in
// order.
void KeepAllPanels(Scheduler& s, Decisions& decisions) {
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    for (const UOp* load : reduce.loads) {
      const UOp* rows = nullptr;
      bool has_lanes = false;
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        const bool upcast = r->range_type() == AxisType::kUpcast;
        has_lanes |= upcast && r->range_size() >= VectorLanes(s, reduce) && sets.Depends(load, r);
        if (r->range_type() == AxisType::kLocal && !sets.Depends(load, r)) rows = r;
      }
      if (!has_lanes || rows == nullptr) continue;
      const bool all_stay = OperandBytes(sets, reduce, load) <= s.target().l2_bytes / 2;
      if (!decisions.Confirm("rows-outside", all_stay)) continue;
      return OrderRows(s, sets, reduce, load, rows, /*inside=*/false);
    }
  }
}

}  // namespace

LanesInPlace FindLanesInPlace(const Scheduler& s, const RangeSets& sets,
                              const StatementAccesses& reduce) {
  if (MustBePacked(s, sets, reduce)) return {};
  LanesInPlace possible;
  for (const UOp* load : reduce.loads) {
    const UOp* buffer = load->src(0);
    if (buffer->op != Op::kParam || IsConstantSlot(s.kernel(), buffer->slot())) continue;
    int64_t lanes = 1;
    for (const UOp* q : sets.Members(sets.Of(load))) {
      const bool upcast = q->range_type() == AxisType::kUpcast;
      if (upcast && PatternAlong({reduce.node, {load}, nullptr}, q).contiguous > 0) {
        lanes = q->range_size();
      }
    }
    if (lanes % VectorLanes(s, reduce) != 0 || FitsFirstCache(s, sets, reduce, load)) continue;
    if (IsWidened(s, reduce, load)) continue;
    const UOp* rows = nullptr;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      if (r->range_type() != AxisType::kLoop || r->range_size() < 2 || sets.Depends(load, r)) {
        continue;
      }
      if (rows == nullptr || r->range_size() > rows->range_size()) rows = r;
    }
    if (rows == nullptr) continue;
    const bool stays = StaysInCache(s.target(), sets, reduce, load);
    const bool pays = stays || rows->range_size() < kLeastUses ||
                      ReadsInPlace(s.target(), reduce, load, lanes, rows->range_size());
    const int64_t bytes = buffer->buffer_size() * ByteSize(load->dtype.scalar);
    const LanesInPlace found = {load, rows, stays, bytes > s.target().l2_bytes, pays};
    if (pays) return found;
    if (possible.load == nullptr) possible = found;
  }
  return possible;
}

namespace {

// How many rows of tiles are packed together, at most `most`, best first, where the blocks are
// divided among so many `threads`. If no number near that divides `size`, the loop is padded to a
// multiple of the one that adds least.
std::vector<int64_t> RowBlocks(int64_t size, int64_t most, int64_t threads) {
  constexpr int64_t kLargestWhole = 32;
  std::vector<int64_t> blocks;
  for (int64_t block = most; block >= 2; --block) {
    if (size % (block * threads) == 0) blocks.push_back(block);
  }
  if (size > most && size <= kLargestWhole) blocks.push_back(size);
  if (size < most || (!blocks.empty() && blocks[0] >= most / 2)) return blocks;
  const auto added = [&](int64_t block) {
    const int64_t whole = block * threads;
    return (size + whole - 1) / whole * whole - size;
  };
  int64_t best = most;
  for (int64_t block = most; block >= most / 2; --block) {
    if (added(block) < added(best)) best = block;
  }
  if (blocks.empty() || added(best) <= size / 32) blocks.insert(blocks.begin(), best);
  return blocks;
}

// Whether the operand of the rows is packed, too, by blocks of at most `most` tiles.
struct RowPacking {
  bool pays = false;
  int64_t most = 16;
  int64_t threads = 1;  // that divide the blocks, if there are many
};

// It pays where the operand is no walk through memory along the reduced axis, where each tile would
// widen it again, and on some cores where it comes from beyond the second-level cache.
RowPacking FindRowPacking(const Scheduler& s, const RangeSets& sets,
                          const StatementAccesses& reduce, const UOp* rows, const UOp* columns) {
  constexpr int64_t kMostFar = 20;
  RowPacking packing;
  if (columns == nullptr) return packing;
  for (const UOp* load : reduce.loads) {
    if (!sets.Depends(load, rows)) continue;
    packing.pays |= LiesApart(sets, reduce, load);
    const bool widened = IsWidened(s, reduce, load);
    packing.pays |= widened && columns->range_size() >= kLeastWidened;
    // Windows read again what they share; a tile may be padded.
    const int64_t bytes = load->src(0)->buffer_size() * ByteSize(load->dtype.scalar);
    const bool once = OperandBytes(sets, reduce, load) < 2 * bytes;
    const bool far = bytes > s.target().l2_bytes;
    const bool far_pays =
        once && far && columns->range_size() >= kLeastFar && TraitsOf(s.target()).packs_far_rows;
    if (!packing.pays && far_pays) packing = {.pays = true, .most = kMostFar};
    const int64_t cores = s.target().cores;
    const bool many = rows->range_size() >= 2 * packing.most * cores && PaysThreads(s);
    if ((widened || far_pays) && many) packing.threads = cores;
  }
  return packing;
}

// How many of `size` rows of tiles use a packed operand before the next is packed: `best` (0: all),
// then others.
std::vector<int64_t> LocalAmounts(int64_t size, int64_t best) {
  std::vector<int64_t> amounts = {best};
  if (best != 0) amounts.push_back(0);
  for (int64_t other : {64, 32, 16, 8, 4, 2}) {
    if (other != best && other < size && size % other == 0) amounts.push_back(other);
  }
  return amounts;
}

}  // namespace

// A product reads one operand again for every row of tiles: keep its panel, packed, in cache.
void TileCaches(Scheduler& s, Decisions& decisions) {
  for (const Axis& a : s.axes()) {
    if (a.type == AxisType::kLocal) return;  // Tiles of matrix instructions are packed already.
  }
  const RangeSets sets(s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    bool tiled = false;
    bool sum_lanes = false;
    int64_t depth = 1;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      tiled |= r->range_type() == AxisType::kUpcast;
    }
    for (const UOp* r : reduce.node->src().subspan(1)) {
      depth *= r->range_size();
      sum_lanes |= IsRegisterAxis(r->range_type()) && r->range_size() >= VectorLanes(s, reduce);
    }
    if (!tiled || depth < kLeastDepthApart) continue;
    const bool deep = depth >= kLeastDepth;
    const LanesInPlace lanes =
        sum_lanes || !deep ? LanesInPlace{} : FindLanesInPlace(s, sets, reduce);
    if (lanes.load != nullptr && decisions.Confirm("in-place", lanes.pays)) {
      return OrderRows(s, sets, reduce, lanes.load, lanes.rows, /*inside=*/!lanes.all);
    }
    // The output loop along which the lane operand is reused most often.
    const UOp* best = nullptr;
    for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
      if (r->range_type() != AxisType::kLoop) continue;
      for (const UOp* load : reduce.loads) {
        const LaneUse use =
            LanesOf(s, sets, reduce, load, sum_lanes ? AxisType::kUnroll : AxisType::kUpcast);
        // What lies apart would be gathered again and again; a constant is packed ahead. What
        // stays in the first cache as it is, gains nothing.
        const UOp* buffer = load->src(0);
        const bool constant =
            buffer->op == Op::kParam && IsConstantSlot(s.kernel(), buffer->slot());
        bool pays = use.apart;
        pays |= IsWidened(s, reduce, load) && r->range_size() >= kLeastWidened;
        if (!sum_lanes && deep) {  // Those read their operands as they lie in memory, if they can.
          pays |= lanes.load == load || constant ||
                  (r->range_size() >= kLeastUses && !FitsFirstCache(s, sets, reduce, load));
        }
        const bool reused = pays && !sets.Depends(load, r) && r->range_size() >= 2;
        if (reused && use.has_lanes && (best == nullptr || r->range_size() > best->range_size())) {
          best = r;
        }
      }
    }
    if (best == nullptr) continue;
    const UOp* columns = sum_lanes ? nullptr : ColumnsLoop(sets, reduce, best);
    const RowPacking rows = FindRowPacking(s, sets, reduce, best, columns);
    const bool pack_rows = columns != nullptr && decisions.Confirm("pack-rows", rows.pays);
    const int rows_axis = AxisNumber(s, best);
    const std::vector<int64_t> blocks = RowBlocks(best->range_size(), rows.most, rows.threads);
    if (!pack_rows || blocks.empty()) {
      const std::vector<int64_t> amounts =
          LocalAmounts(best->range_size(), LocalAmount(s, rows_axis, -1));
      const int64_t amount = decisions.Pick("packed-rows", amounts);
      if (!Try(s, ActionKind::kLocal, rows_axis, amount)) return;
      KeepAllPanels(s, decisions);
      PanelsOutside(s, decisions);
      return;
    }
    const int64_t size = best->range_size();
    const int64_t block = decisions.Pick("packed-block", blocks);
    if (!PadTo(s, best, block * rows.threads)) return;
    const int columns_axis = AxisNumber(s, columns);
    const int64_t amount = LocalAmount(s, columns_axis, block == size ? rows_axis : -1);
    if (!Try(s, ActionKind::kLocal, columns_axis, amount)) return;
    // A loop that becomes LOCAL whole moves behind the others, and those behind it move up.
    const bool moved = amount == 0 && columns_axis < rows_axis;
    Try(s, ActionKind::kLocal, moved ? rows_axis - 1 : rows_axis, block);
    return;
  }
}

}  // namespace quern
