#include "codegen/two_stage.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/lowered_kernel.h"
#include "codegen/row_major.h"
#include "rewrite/build.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/range_sets.h"
#include "rewrite/scan.h"

namespace quern {
namespace {

const UOp* ThreadRangeOf(const UOp* u) {
  if (u->op != Op::kReduce && u->op != Op::kScan) return nullptr;
  for (const UOp* r : u->src().subspan(1)) {
    if (r->range_type() == AxisType::kThread) return r;
  }
  return nullptr;
}

// The loops around a nested reduction may belong to another one; in a phase of its own they are
// loops over its results.
AxisType AsOutput(AxisType type) {
  if (!IsReduceAxis(type)) return type;
  return IsRegisterAxis(type) ? AxisType::kUpcast : AxisType::kLoop;
}

// The loops of one thread's block, as those of its total.
std::vector<const UOp*> AsReduced(UOpGraph& g, const std::vector<const UOp*>& ranges) {
  std::vector<const UOp*> reduced;
  for (const UOp* r : ranges) {
    const AxisType type = IsRegisterAxis(r->range_type()) ? AxisType::kUnroll : AxisType::kReduce;
    reduced.push_back(Range(g, r->range_size(), r->range_axis(), type));
  }
  return reduced;
}

// What a SCAN over threads is in the thread's own block, beginning with the totals of the blocks
// before it.
const UOp* ScanBlock(UOpGraph& g, const UOp* scan, const UOp* threads, const UOp* again,
                     const UOp* totals, const std::vector<const UOp*>& rest) {
  const Op op = scan->reduce_op();
  const bool reverse = (scan->arg.b & kScanReverse) != 0;
  const UOp* counts = reverse ? Lt(g, threads, again) : Lt(g, again, threads);
  const UOp* identity = ReduceIdentity(g, op, scan->dtype);
  const UOp* before = Reduce(g, op, Where(g, counts, totals, identity), {{again}});
  if (!rest.empty()) return Binary(g, op, before, Scan(g, op, scan->arg.b, scan->src(0), rest));
  return (scan->arg.b & kScanExclusive) != 0 ? before : Binary(g, op, before, scan->src(0));
}

// A free axis number: after all others.
int NextAxis(const RangeSets& sets) {
  return sets.ranges().empty() ? 0 : sets.ranges().back()->range_axis() + 1;
}

// One of two scans that run through a loop in both directions; nullptr if there are none.
const UOp* FindOpposed(const UOp* sink) {
  absl::flat_hash_map<const UOp*, const UOp*> first;
  for (const UOp* scan : Toposort(sink)) {
    if (scan->op != Op::kScan) continue;
    for (const UOp* r : scan->src().subspan(1)) {
      if (IsRegisterAxis(r->range_type())) continue;
      const UOp* other = first.try_emplace(r, scan).first->second;
      // The inner one, if one is part of the other.
      if ((other->arg.b & kScanReverse) != (scan->arg.b & kScanReverse)) return other;
    }
  }
  return nullptr;
}

// A place in a temporary for each combination of `dimensions`, the last one fastest.
const UOp* TemporaryPlace(UOpGraph& g, DType dtype, int64_t slot,
                          const std::vector<const UOp*>& dimensions) {
  int64_t elements = 1;
  for (const UOp* r : dimensions) elements *= r->range_size();
  return Index(g, Param(g, dtype, slot, elements), RowMajorOffset(g, dimensions));
}

// The same loops where what they compute is stored.
std::vector<const UOp*> AsOutputs(UOpGraph& g, const std::vector<const UOp*>& dimensions) {
  std::vector<const UOp*> outputs;
  for (const UOp* r : dimensions) {
    outputs.push_back(Range(g, r->range_size(), r->range_axis(), AsOutput(r->range_type())));
  }
  return outputs;
}

// What the loops over threads had to do with each other.
struct ThreadLoops {
  const UOp* range = nullptr;
  bool forwards = false;   // scanned
  bool backwards = false;  // scanned
  bool reduced = false;

  void Add(const UOp* reduce, const UOp* threads) {
    range = threads;
    const bool scans = reduce->op == Op::kScan;
    const bool reverse = scans && (reduce->arg.b & kScanReverse) != 0;
    reduced |= !scans;
    backwards |= reverse;
    forwards |= scans && !reverse;
  }
  // Whether threads wait for those before them only, or for those after them only.
  bool one_way() const { return !reduced && forwards != backwards; }
};

// The phases with the flag that they may run part by part. Where threads wait for those after them,
// they are numbered from the last one.
std::vector<const UOp*> MarkPartByPart(UOpGraph& g, const std::vector<const UOp*>& phases,
                                       const ThreadLoops& loops) {
  const UOp* last = IndexConst(g, loops.range->range_size() - 1);
  const UOp* turned = Sub(g, last, loops.range);
  std::vector<const UOp*> result;
  for (const UOp* phase : phases) {
    const UOp* body = loops.backwards ? Substitute(g, phase, {{loops.range}}, {{turned}}) : phase;
    result.push_back(
        g.Make(Op::kSink, kVoidType, body->src(), {body->arg.a | kPartByPartFlag, body->arg.b}));
  }
  return result;
}

}  // namespace

const UOp* SplitPhases(UOpGraph& graph, const UOp* sink) {
  std::vector<const UOp*> phases;
  ThreadLoops loops;
  int64_t slot = kFirstTemporarySlot;
  for (bool changed = true; changed;) {
    changed = false;
    const RangeSets sets(sink);
    for (const UOp* reduce : Toposort(sink)) {
      const UOp* threads = ThreadRangeOf(reduce);
      if (threads == nullptr) continue;
      loops.Add(reduce, threads);
      std::vector<const UOp*> rest;
      for (const UOp* r : reduce->src().subspan(1)) {
        if (r != threads) rest.push_back(r);
      }
      std::vector<const UOp*> dimensions = {threads};
      for (const UOp* r : sets.Members(sets.Of(reduce))) {
        const std::span<const UOp* const> own = reduce->src().subspan(1);
        if (std::find(own.begin(), own.end(), r) == own.end()) dimensions.push_back(r);
      }
      const UOp* partial = TemporaryPlace(graph, reduce->dtype, slot++, dimensions);
      const std::vector<const UOp*> block = reduce->op == Op::kScan ? AsReduced(graph, rest) : rest;
      const UOp* value = Substitute(graph, reduce->src(0), rest, block);
      if (!block.empty()) value = Reduce(graph, reduce->reduce_op(), value, block);
      const UOp* store =
          Substitute(graph, Store(graph, partial, value), dimensions, AsOutputs(graph, dimensions));
      phases.push_back(Sink(graph, {{store}}));
      const UOp* again = Range(graph, threads->range_size(), NextAxis(sets), AxisType::kReduce);
      const UOp* load = Substitute(graph, Load(graph, partial), {{threads}}, {{again}});
      const UOp* combined = reduce->op == Op::kScan
                                ? ScanBlock(graph, reduce, threads, again, load, rest)
                                : Reduce(graph, reduce->reduce_op(), load, {{again}});
      sink = Substitute(graph, sink, {{reduce}}, {{combined}});
      changed = true;
      break;
    }
  }
  while (const UOp* scan = FindOpposed(sink)) {
    const RangeSets sets(sink);
    const std::vector<const UOp*> dimensions = sets.Members(sets.Of(scan));
    const UOp* place = TemporaryPlace(graph, scan->dtype, slot++, dimensions);
    const UOp* store =
        Substitute(graph, Store(graph, place, scan), dimensions, AsOutputs(graph, dimensions));
    phases.push_back(Sink(graph, {{store}}));
    sink = Substitute(graph, sink, {{scan}}, {{Load(graph, place)}});
  }
  phases.push_back(sink);
  return Sink(graph, loops.one_way() ? MarkPartByPart(graph, phases, loops) : phases);
}

}  // namespace quern
