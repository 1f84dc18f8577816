#include <algorithm>

#include "optimizer/cpu_traits.h"
#include "optimizer/heuristic_steps.h"
#include "optimizer/work.h"

namespace quern {
namespace {

// Rough speed of one core with 64-byte vectors: for its own caches and for what is beyond.
constexpr double kOperationsPerSecond = 2e11;
constexpr double kCachedBytesPerSecond = 1e11;
constexpr double kBytesPerSecond = 1e10;
// Where two threads began to be faster than one, in a table of kernels (docs/decisions.md).
constexpr double kLeastThreadedSeconds = 6e-6;

// How well a statement vectorises along a range.
int LaneScore(const AccessPattern& p) { return 2 * p.contiguous - 2 * p.strided - 3 * p.gathered; }

// The ranges on which the REDUCEs below a statement depend: their tiles are decided there.
uint64_t ReducedOutputs(const RangeSets& sets, const UOp* node) {
  uint64_t set = 0;
  for (const UOp* u : Toposort(node)) {
    if (u != node && u->op == Op::kReduce) set |= sets.Of(u);
  }
  return set;
}

// A higher score, or a longer axis.
bool IsBetter(const BestAxis& a, const BestAxis& b) {
  if (b.range == nullptr || a.score != b.score) return b.range == nullptr || a.score > b.score;
  return a.range->range_size() > b.range->range_size();
}

}  // namespace

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

bool PadTo(Scheduler& s, const UOp* range, int64_t multiple) {
  return range->range_size() % multiple == 0 ||
         Try(s, ActionKind::kPadTo, AxisNumber(s, range), multiple);
}

bool PadAndApply(Scheduler& s, ActionKind kind, const UOp* range, int64_t amount) {
  const int number = kind == ActionKind::kUnroll ? ReduceNumber(s, range) : AxisNumber(s, range);
  Scheduler trial = s;
  if (!PadTo(trial, range, amount) || !Try(trial, kind, number, amount)) return false;
  s = std::move(trial);
  return true;
}

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

BestAxis BestReduceLane(const StatementAccesses& reduce) {
  BestAxis best;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (IsRegisterAxis(r->range_type()) || r->range_size() < 2) continue;
    const int score = LaneScore(PatternAlong(reduce, r)) - 1;  // The lanes must be combined.
    if (IsBetter({r, score}, best)) best = {r, score};
  }
  return best;
}

namespace {

// Whether a load is used again along an output loop other than `except`.
bool IsReused(const RangeSets& sets, const UOp* node, const UOp* load, const UOp* except,
              int64_t least) {
  for (const UOp* r : sets.Members(sets.Of(node))) {
    if (r == except || r->range_type() != AxisType::kLoop || r->range_size() < least) continue;
    if (!sets.Depends(load, r)) return true;
  }
  return false;
}

}  // namespace

int64_t TimesUsed(const RangeSets& sets, const StatementAccesses& reduce, const UOp* load) {
  int64_t times = 1;
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (!sets.Depends(load, r)) times *= r->range_size();
  }
  return times;
}

bool IsProduct(const RangeSets& sets, const StatementAccesses& reduce) {
  constexpr int64_t kLeastDepth = 8;
  constexpr int64_t kLeastReuse = 32;
  constexpr int64_t kLeastMatrixReuse = 8;  // Matrix instructions leave more time for packing.
  if (reduce.node->op != Op::kReduce || reduce.loads.size() < 2) return false;
  int64_t depth = 1;
  int64_t least_reuse = kLeastReuse;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    depth *= r->range_size();
    if (r->range_type() == AxisType::kWarp) least_reuse = kLeastMatrixReuse;
  }
  for (const UOp* load : reduce.loads) {
    if (TimesUsed(sets, reduce, load) < least_reuse) return false;
  }
  return depth >= kLeastDepth;
}

BestAxis BestOutputLane(const RangeSets& sets, const StatementAccesses& statement,
                        const StatementAccesses* store) {
  BestAxis best;
  const bool is_store = statement.node->op == Op::kStore;
  const bool product = IsProduct(sets, statement);
  const uint64_t decided = is_store ? ReducedOutputs(sets, statement.node) : 0;
  for (const UOp* r : sets.Members(sets.Of(statement.node) & ~decided)) {
    if (r->range_type() != AxisType::kLoop || r->range_size() < 2) continue;
    AccessPattern own = PatternAlong(statement, r);
    if (product) {
      // What lies apart along the lanes will be packed, and then does not.
      for (const UOp* load : statement.loads) {
        const StatementAccesses one = {statement.node, {load}, nullptr};
        const bool packed = IsReused(sets, statement.node, load, r, 8);
        if (PatternAlong(one, r).strided > 0 && packed) --own.strided;
      }
    }
    int score = LaneScore(own);
    if (store != nullptr) {
      const AccessPattern p = PatternAlong(*store, r);
      score += (p.store_contiguous ? 2 : p.store_depends ? -2 : 0);
      if (store != &statement) score += LaneScore(p);
      // A copy that turns its operand around is written along the lanes and read in blocks.
      if (is_store && p.store_contiguous) score = std::max(score, 2);
    }
    if (IsBetter({r, score}, best)) best = {r, score};
  }
  return best;
}

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

int64_t BufferBytes(const UOp* kernel) {
  int64_t bytes = 0;
  for (const UOp* u : Toposort(kernel)) {
    if (IsBuffer(u->op)) bytes += u->buffer_size() * ByteSize(u->dtype.scalar);
  }
  return bytes;
}

bool PaysThreads(const Scheduler& s) {
  if (s.target().cores < 2) return false;
  const WorkEstimate work = EstimateWork(s.kernel());
  const double bandwidth = work.bytes <= static_cast<double>(s.target().l2_bytes)
                               ? kCachedBytesPerSecond
                               : kBytesPerSecond;
  const double operations = kOperationsPerSecond * TraitsOf(s.target()).vector_rate;
  return work.cost / operations + work.bytes / bandwidth >= kLeastThreadedSeconds;
}

bool CanDivide(int64_t size, int64_t threads) {
  constexpr int64_t kLeastChunk = 3;  // Of shorter ones, what is padded is too much.
  return size % threads == 0 || size >= kLeastChunk * threads;
}

uint64_t MaskedRanges(const RangeSets& sets, const UOp* kernel) {
  uint64_t masked = 0;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op == Op::kLoad && u->src(0)->source_count == 3) masked |= sets.Of(u->src(0)->src(2));
  }
  return masked;
}

}  // namespace quern
