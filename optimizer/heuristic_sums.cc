#include <vector>

#include "optimizer/heuristic_steps.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// The plain loops of a reduction, outermost first.
std::vector<const UOp*> SumLoops(const RangeSets& sets, const UOp* reduce) {
  uint64_t own = 0;
  for (const UOp* r : reduce->src().subspan(1)) own |= sets.Bit(r);
  std::vector<const UOp*> loops = sets.Members(own);
  std::erase_if(loops, [](const UOp* r) { return r->range_type() != AxisType::kReduce; });
  return loops;
}

// Bytes of what one iteration of the output loops reads of an operand.
int64_t PanelBytes(const RangeSets& sets, const UOp* load) {
  int64_t bytes = ByteSize(load->dtype.scalar);
  for (const UOp* r : sets.Members(sets.Of(load))) {
    const bool own = IsReduceAxis(r->range_type()) || IsRegisterAxis(r->range_type());
    if (own) bytes *= r->range_size();
  }
  return bytes;
}

// Whether the sum is all that is stored, so that the output can hold what is there of it.
bool IsStoredBare(const std::vector<StatementAccesses>& all, const UOp* reduce) {
  const StatementAccesses* store = FindStore(all);
  return store != nullptr && store->node->src(1) == reduce;
}

// Into how many blocks a sum of `size` steps is cut, best first; 1 leaves it whole. Cut is what has
// panels of so many bytes that they do not stay in the second-level cache.
std::vector<int64_t> NumbersOfBlocks(const Target& target, int64_t panel_bytes, int64_t size) {
  constexpr int64_t kLeastSteps = 64;  // Shorter blocks read and write the output too often.
  int64_t best = 1;
  if (panel_bytes > target.l2_bytes / 2) {
    best = 2;
    while (best < size && (size % best != 0 || panel_bytes / best > target.l2_bytes / 4)) ++best;
    if (size / best < kLeastSteps) best = 1;
  }
  std::vector<int64_t> ways = {best};
  for (int64_t other : {1, 2, 4, 8, 16}) {
    if (other != best && size % other == 0 && size / other >= kLeastSteps) ways.push_back(other);
  }
  return ways;
}

}  // namespace

void OrderSums(Scheduler& s, Decisions& decisions) {
  constexpr int64_t kLeastSteps = 16;
  const RangeSets sets(s.kernel());
  const uint64_t masked = MaskedRanges(sets, s.kernel());
  for (const StatementAccesses& reduce : CollectAccesses(s.kernel())) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    if (!IsProduct(sets, reduce) || !HasRegisterAxis(sets, reduce.node)) continue;
    const std::vector<const UOp*> loops = SumLoops(sets, reduce.node);
    if (loops.size() < 2) continue;
    const UOp* longest = loops.back();
    for (const UOp* r : loops) {
      const bool plain = (masked & sets.Bit(r)) == 0;
      if (plain && r->range_size() > longest->range_size()) longest = r;
    }
    // The loop that goes innermost, best first: the others are for a search.
    std::vector<const UOp*> ways = {longest->range_size() < kLeastSteps ? loops.back() : longest};
    for (const UOp* r : loops) {
      if (r != ways[0]) ways.push_back(r);
    }
    const UOp* innermost = decisions.Pick("innermost-sum", ways);
    if (innermost == loops.back()) continue;
    Try(s, ActionKind::kSwap, AxisNumber(s, innermost), AxisNumber(s, loops.back()));
    return;
  }
}

void BlockSums(Scheduler& s, Decisions& decisions) {
  constexpr int64_t kLeastTiles = 8;
  const RangeSets sets(s.kernel());
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  for (const StatementAccesses& reduce : all) {
    if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) continue;
    const std::vector<const UOp*> loops = SumLoops(sets, reduce.node);
    if (loops.size() != 1) continue;
    for (const UOp* load : reduce.loads) {
      // The operand of the lanes, which tiles of rows read again.
      const UOp* panels = nullptr;
      int64_t tiles = 1;
      bool has_lanes = false;
      for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
        const bool follows = sets.Depends(load, r);
        if (r->range_type() == AxisType::kUpcast && r->range_size() >= VectorLanes(s, reduce)) {
          has_lanes |= follows;
        }
        if (IsRegisterAxis(r->range_type())) continue;
        if (follows) panels = r;
        if (!follows) tiles *= r->range_size();
      }
      if (!has_lanes || tiles < kLeastTiles) continue;
      const std::vector<int64_t> ways =
          NumbersOfBlocks(s.target(), PanelBytes(sets, load), loops[0]->range_size());
      const int64_t blocks = decisions.Pick("blocks", ways);
      if (blocks < 2) continue;
      const bool bare = IsStoredBare(all, reduce.node);
      if (!bare && panels == nullptr) return;
      const int outside = bare ? 0 : AxisNumber(s, panels) + 1;
      Scheduler trial = s;
      int block = AxisNumber(s, loops[0]);
      if (!Try(trial, ActionKind::kGroupTop, ReduceNumber(s, loops[0]), blocks)) return;
      for (; block > outside; --block) {
        if (!Try(trial, ActionKind::kSwap, block - 1, block)) return;
      }
      s = std::move(trial);
      return;
    }
  }
}

}  // namespace quern
