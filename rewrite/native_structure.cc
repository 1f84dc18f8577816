#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "rewrite/build.h"
#include "rewrite/native_rule.h"
#include "rewrite/outside.h"

// Gates, loops, reductions and vectors: nodes whose number of sources varies.

namespace quern {
namespace {

using Sources = absl::InlinedVector<const UOp*, 8>;

const UOp* EmptyBlock(UOpGraph& g) { return g.Make(Op::kBlock, kVoidType, {}); }

bool HasConstGate(const UOp* index, bool value) {
  return index->op == Op::kIndex && index->source_count == 3 && index->src(2)->IsConst() &&
         (index->src(2)->IntValue() != 0) == value;
}

const UOp* TrueGate(const UOp* u, RuleContext& context) {
  if (!HasConstGate(u, true)) return nullptr;
  return context.graph.Make(Op::kIndex, u->dtype, {u->src(0), u->src(1)}, u->arg);
}

const UOp* FalseGate(const UOp* u, RuleContext& context) {
  if (!HasConstGate(u->src(0), false)) return nullptr;
  if (u->op == Op::kStore) return EmptyBlock(context.graph);
  return IsFloat(u->dtype) ? Outside(context.graph, u->dtype) : ConstLike(context.graph, u, 0);
}

// Statements that do nothing vanish; blocks in blocks are one block.
const UOp* Statements(const UOp* u, RuleContext& context) {
  UOpGraph& g = context.graph;
  Sources kept;
  size_t first = 0;
  if (u->op == Op::kLoop) {
    const UOp* range = u->src(0);
    if (range->op == Op::kRange && range->range_size() == 0) return EmptyBlock(g);
    if (range->IsConst()) {
      for (const UOp* s : u->src().subspan(1)) {
        // Without its loop a guard would hold for what follows there.
        if (s->op != Op::kGuard) kept.push_back(s);
      }
      return g.Make(Op::kBlock, kVoidType, kept);
    }
    kept.push_back(range);
    first = 1;
  }
  bool changed = false;
  for (const UOp* s : u->src().subspan(first)) {
    if (s->op == Op::kGuard && s->src(0)->IsConst() && s->src(0)->IntValue() != 0) {
      changed = true;
    } else if (s->op == Op::kBlock) {
      kept.insert(kept.end(), s->src().begin(), s->src().end());
      changed = true;
    } else {
      kept.push_back(s);
    }
  }
  const auto is_guard = [](const UOp* s) { return s->op == Op::kGuard; };
  if (u->op == Op::kLoop && std::all_of(kept.begin() + 1, kept.end(), is_guard)) {
    return EmptyBlock(g);
  }
  if (u->op == Op::kBlock && kept.size() == 1) return kept[0];
  return changed ? g.Make(u->op, u->dtype, kept, u->arg) : nullptr;
}

// A range of size 1 has become the constant 0: nothing is left to combine over it.
const UOp* ClosedRanges(const UOp* u, RuleContext& context) {
  Sources kept = {u->src(0)};
  for (const UOp* r : u->src().subspan(1)) {
    if (r->op == Op::kRange && r->range_size() == 0 && u->op == Op::kReduce) {
      const bool has_identity =
          !IsIndex(u->dtype) || u->reduce_op() == Op::kAdd || u->reduce_op() == Op::kMul;
      return has_identity ? ReduceIdentity(context.graph, u->reduce_op(), u->dtype) : nullptr;
    }
    if (!r->IsConst()) kept.push_back(r);
  }
  if (kept.size() == u->source_count) return nullptr;
  if (kept.size() == 1 && u->op == Op::kScan && (u->arg.b & kScanExclusive) != 0) {
    return ReduceIdentity(context.graph, u->reduce_op(), u->dtype);
  }
  if (kept.size() == 1) return u->src(0);
  return context.graph.Make(u->op, u->dtype, kept, u->arg);
}

// Reductions for which all terms are equal and one is as good as many.
const UOp* InvariantReduce(const UOp* u, RuleContext& context) {
  if (u->reduce_op() != Op::kMax && u->reduce_op() != Op::kMin) return nullptr;
  if (!u->src(0)->IsConst() || u->op != Op::kReduce) return nullptr;
  for (const UOp* r : u->src().subspan(1)) {
    if (r->op != Op::kRange || r->range_size() == 0) return nullptr;
  }
  return u->src(0);
}

// What is the same in every lane is computed once.
const UOp* BroadcastOutside(const UOp* u, RuleContext& context) {
  if (u->dtype.lanes == 1 || (u->child_mask & OpBit(Op::kBroadcast)) == 0) return nullptr;
  UOpGraph& g = context.graph;
  for (const UOp* s : u->src()) {
    if (s->op != Op::kBroadcast && !s->IsConst()) return nullptr;
  }
  Sources scalars;
  for (const UOp* s : u->src()) {
    scalars.push_back(s->op == Op::kBroadcast ? s->src(0)
                                              : g.Make(Op::kConst, s->dtype.Scalar(), {}, s->arg));
  }
  for (const UOp* s : scalars) {
    if (s->dtype.lanes != 1) return nullptr;
  }
  const UOp* scalar = g.Make(u->op, u->dtype.Scalar(), scalars, u->arg);
  return g.Make(Op::kBroadcast, u->dtype, {scalar});
}

const UOp* ExtractLane(const UOp* u, RuleContext& context) {
  const UOp* vector = u->src(0);
  if (u->dtype.lanes != 1) return nullptr;
  if (vector->op == Op::kBroadcast && vector->src(0)->dtype.lanes == 1) return vector->src(0);
  if (vector->op == Op::kLanes) return ConstLike(context.graph, u, u->arg.a);
  if (vector->IsConst()) return ConstLike(context.graph, u, vector->arg.a);
  // One lane of an index is computed as a scalar: it is a sum of lane numbers and broadcasts.
  if (!IsIndex(u->dtype) || !IsElementwise(vector->op)) return nullptr;
  Sources scalars;
  for (const UOp* s : vector->src()) {
    scalars.push_back(context.graph.Make(Op::kExtract, s->dtype.Scalar(), {s}, u->arg));
  }
  return context.graph.Make(vector->op, u->dtype, scalars, vector->arg);
}

uint64_t ElementwiseRoots() {
  uint64_t mask = 0;
  for (int i = 0; i < kOpCount; ++i) {
    if (IsElementwise(static_cast<Op>(i))) mask |= OpBit(static_cast<Op>(i));
  }
  return mask;
}

}  // namespace

std::span<const NativeRule> NativeStructureRules() {
  static const NativeRule rules[] = {
      {"gate.true", OpBit(Op::kIndex), TrueGate, "drops a source"},
      {"gate.false", OpBit(Op::kLoad) | OpBit(Op::kStore), FalseGate, "makes a statement vanish"},
      {"statements.flat",
       OpBit(Op::kLoop) | OpBit(Op::kBlock) | OpBit(Op::kSink) | OpBit(Op::kPhase), Statements,
       "any number of sources"},
      {"ranges.closed", OpBit(Op::kReduce) | OpBit(Op::kStage) | OpBit(Op::kScan), ClosedRanges,
       "any number of sources"},
      {"reduce.constant", OpBit(Op::kReduce), InvariantReduce, "any number of sources"},
      {"broadcast.outside", ElementwiseRoots(), BroadcastOutside, "applies to every operation"},
      {"extract.lane", OpBit(Op::kExtract), ExtractLane, "reads the lane number"},
  };
  return rules;
}

}  // namespace quern
