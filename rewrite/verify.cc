#include "rewrite/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite/concat.h"
#include "rewrite/graph.h"
#include "rewrite/prove_access.h"
#include "rewrite/range_sets.h"
#include "rewrite/temporaries.h"
#include "rewrite/verify_node.h"

namespace quern {
namespace {

std::string NameOf(const UOp* u) {
  if (u->op == Op::kRange) {
    return Concat("the range of axis ", u->range_axis(), " (size ", u->range_size(), ", type ",
                  AxisTypeName(u->range_type()), ")");
  }
  if (IsBuffer(u->op)) {
    return Concat(OpName(u->op), " ", u->slot(), " (", DTypeName(u->dtype), ", ", u->buffer_size(),
                  " elements)");
  }
  if (u->op == Op::kIndex) return Concat("the access of ", NameOf(u->src(0)));
  if (u->op == Op::kReduce || u->op == Op::kScan)
    return Concat("the ", OpName(u->op), ".", DTypeName(u->dtype), " by ", OpName(u->reduce_op()));
  return Concat("the ", OpName(u->op), ".", DTypeName(u->dtype));
}

template <typename... Parts>
absl::Status Fail(const Parts&... parts) {
  return absl::InvalidArgumentError(Concat(parts...));
}

absl::Status VerifyNodes(const std::vector<const UOp*>& order) {
  size_t ranges = 0;
  for (const UOp* u : order) {
    if (absl::Status s = VerifyNode(u); !s.ok()) return s;
    if (u->op == Op::kRange) ++ranges;
  }
  if (ranges > RangeSets::kMaxRanges) {
    return Fail("a kernel has at most ", RangeSets::kMaxRanges, " ranges, not ", ranges);
  }
  return absl::OkStatus();
}

// Two nodes of one kind and slot would be two views of one memory.
absl::Status VerifySlots(const std::vector<const UOp*>& order) {
  absl::flat_hash_map<std::pair<Op, int64_t>, const UOp*> slots;
  for (const UOp* u : order) {
    if (!IsBuffer(u->op)) continue;
    const auto [found, is_new] = slots.try_emplace({u->op, u->slot()}, u);
    if (!is_new) return Fail(NameOf(u), " and ", NameOf(found->second), " share a slot");
  }
  return absl::OkStatus();
}

bool IsEmpty(const UOp* range) { return range->op == Op::kRange && range->range_size() == 0; }

// Whether `u` runs never, whatever stands around it: a loop or a store over an empty range, or a
// REDUCE, which then is its identity.
bool NeverRuns(const UOp* u, const RangeSets& sets) {
  switch (u->op) {
    case Op::kStore: {
      const std::vector<const UOp*> free = sets.Members(sets.Of(u));
      return std::any_of(free.begin(), free.end(), IsEmpty);
    }
    case Op::kReduce:
    case Op::kScan:
    case Op::kLoop:
      return std::any_of(u->src().begin(), u->src().end(), IsEmpty);
    default:
      return false;
  }
}

// The accesses that can happen.
std::vector<const UOp*> LiveAccesses(const UOp* sink, const RangeSets& sets) {
  std::vector<const UOp*> accesses;
  absl::flat_hash_set<const UOp*> seen = {sink};
  std::vector<const UOp*> stack = {sink};
  while (!stack.empty()) {
    const UOp* u = stack.back();
    stack.pop_back();
    if (u->op == Op::kIndex) accesses.push_back(u);
    if (NeverRuns(u, sets)) continue;
    for (const UOp* s : u->src()) {
      if (seen.insert(s).second) stack.push_back(s);
    }
  }
  return accesses;
}

absl::Status VerifyAccesses(const UOp* sink, const RangeSets& sets) {
  for (const UOp* u : LiveAccesses(sink, sets)) {
    if (!IsIndex(u->src(1)->dtype) || ProveAccess(u)) continue;
    const Bounds b = AccessBounds(u).value_or(Bounds{});
    return Fail(NameOf(u), ": the offset is only known to lie in [", b.min, ", ", b.max,
                "], not in [0, ", u->src(0)->buffer_size(), ")");
  }
  return absl::OkStatus();
}

absl::Status VerifyAxes(const std::vector<const UOp*>& ranges) {
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1]->range_axis() != ranges[i]->range_axis()) continue;
    return Fail(NameOf(ranges[i - 1]), " and ", NameOf(ranges[i]), " have the same number");
  }
  return absl::OkStatus();
}

// Loops that REDUCEs cannot close. THREAD and LOCAL can be either kind.
bool IsOutputAxis(AxisType t) {
  return t == AxisType::kLoop || t == AxisType::kGlobal || t == AxisType::kUpcast;
}

absl::Status VerifyKernelNode(const UOp* u, const RangeSets& sets) {
  if (u->dtype.lanes != 1) return Fail(NameOf(u), " is a vector; a kernel AST has none");
  switch (u->op) {
    case Op::kLanes:
    case Op::kBroadcast:
    case Op::kHorizontal:
    case Op::kPrefix:
    case Op::kExtract:
    case Op::kInterleave:
    case Op::kMatrix:
    case Op::kTile:
    case Op::kLoop:
    case Op::kBlock:
    case Op::kGuard:
    case Op::kRegister:
      return Fail(NameOf(u), " does not stand in a kernel AST");
    case Op::kReduce:
      for (const UOp* r : u->src().subspan(1)) {
        if (IsOutputAxis(r->range_type())) return Fail(NameOf(u), " closes ", NameOf(r));
      }
      return absl::OkStatus();
    case Op::kStore:
      for (const UOp* r : sets.Members(sets.Of(u))) {
        if (IsReduceAxis(r->range_type())) {
          return Fail("no reduce closes ", NameOf(r), " in the store to ",
                      NameOf(u->src(0)->src(0)));
        }
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// Each element must be read before it is written, in whatever order the iterations run.
absl::Status VerifyInPlace(const std::vector<const UOp*>& order, const UOp* part) {
  absl::flat_hash_map<const UOp*, const UOp*> stored;  // buffer → offset
  for (const UOp* store : part->src()) {
    if (store->op != Op::kStore || store->src(0)->src(0)->op == Op::kScratch) continue;
    const UOp* index = store->src(0);
    const auto [found, is_new] = stored.try_emplace(index->src(0), index->src(1));
    if (!is_new && found->second != index->src(1)) found->second = nullptr;
  }
  for (const UOp* u : order) {
    if (u->op != Op::kLoad) continue;
    const UOp* index = u->src(0);
    const auto found = stored.find(index->src(0));
    if (found == stored.end() || found->second == index->src(1)) continue;
    return Fail(NameOf(index->src(0)), " is loaded and stored at different offsets");
  }
  // Lowering runs stores one after the other: a later one would read what was just written.
  absl::flat_hash_set<const UOp*> written;
  for (const UOp* store : part->src()) {
    if (store->op != Op::kStore) continue;
    for (const UOp* u : written.empty() ? std::vector<const UOp*>() : Toposort(store)) {
      if (u->op != Op::kLoad || !written.contains(u->src(0)->src(0))) continue;
      return Fail(NameOf(u->src(0)->src(0)), " is loaded after the store that writes it");
    }
    if (store->src(0)->src(0)->op == Op::kParam) written.insert(store->src(0)->src(0));
  }
  return absl::OkStatus();
}

// One store writes a temporary, before others read it. Threads have temporaries of their own, so
// each must read what it has written itself.
absl::Status VerifyTemporaries(const UOp* part) {
  const std::vector<Temporary> temporaries = FindTemporaries(part);
  if (temporaries.empty()) return absl::OkStatus();
  absl::flat_hash_set<const UOp*> written;
  for (const UOp* store : part->src()) {
    if (store->op != Op::kStore) continue;
    for (const UOp* u : Toposort(store)) {
      if (u->op != Op::kLoad || u->src(0)->src(0)->op != Op::kScratch) continue;
      if (written.contains(u->src(0)->src(0))) continue;
      return Fail(NameOf(u->src(0)->src(0)), " is loaded before it is stored");
    }
    const UOp* buffer = store->src(0)->src(0);
    if (buffer->op == Op::kScratch && !written.insert(buffer).second) {
      return Fail(NameOf(buffer), " is stored twice");
    }
  }
  const std::vector<const UOp*> shared = SharedRanges(part);
  for (const UOp* u : Toposort(part)) {
    if (u->op != Op::kRange || u->range_type() != AxisType::kThread) continue;
    if (std::find(shared.begin(), shared.end(), u) != shared.end()) continue;
    return Fail(NameOf(u), " is not shared by all that use ", NameOf(temporaries[0].buffer));
  }
  return absl::OkStatus();
}

// A scan counts through its places in the order in which they run: threads, then loops, then
// registers. It keeps what it has read in mind, so no store of the kernel may change that.
absl::Status VerifyScans(const std::vector<const UOp*>& order, const UOp* part) {
  const auto rank = [](const UOp* r) {
    if (IsRegisterAxis(r->range_type())) return std::pair(2, 0);
    return std::pair(r->range_type() == AxisType::kThread ? 0 : 1, r->range_axis());
  };
  absl::flat_hash_set<const UOp*> stored;
  for (const UOp* s : part->src()) {
    if (s->op == Op::kStore) stored.insert(s->src(0)->src(0));
  }
  for (const UOp* u : order) {
    if (u->op != Op::kScan) continue;
    // Of what never runs, no action can break the order.
    if (std::any_of(u->src().begin(), u->src().end(), IsEmpty)) continue;
    for (size_t i = 1; i < u->source_count; ++i) {
      const UOp* r = u->src(i);
      if (i > 1 && rank(u->src(i - 1)) > rank(r)) {
        return Fail(NameOf(u), " counts through ", NameOf(u->src(i - 1)), " before ", NameOf(r));
      }
    }
    for (const UOp* v : Toposort(u)) {
      if (v->op == Op::kLoad && stored.contains(v->src(0)->src(0))) {
        return Fail(NameOf(u), " reads ", NameOf(v->src(0)->src(0)), ", which the kernel stores");
      }
    }
  }
  return absl::OkStatus();
}

// Loops that stand somewhere inside each statement.
absl::Status VerifyLoops(const std::vector<const UOp*>& order, const RangeSets& sets) {
  absl::flat_hash_map<const UOp*, uint64_t> inside;
  for (const UOp* u : order) {
    if (!GetOpInfo(u->op).statement) continue;
    uint64_t loops = 0;
    for (const UOp* s : u->src()) {
      if (GetOpInfo(s->op).statement) loops |= inside.at(s);
    }
    if (u->op == Op::kLoop) {
      const UOp* r = u->src(0);
      if (IsRegisterAxis(r->range_type())) return Fail(NameOf(r), " is a loop");
      if ((loops & sets.Bit(r)) != 0) return Fail(NameOf(r), " is a loop inside itself");
      loops |= sets.Bit(r);
    }
    inside[u] = loops;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyKernel(const UOp* sink) {
  if (sink->op != Op::kSink) return Fail("a kernel is a sink, not ", NameOf(sink));
  const std::vector<const UOp*> order = Toposort(sink);
  if (absl::Status s = VerifyNodes(order); !s.ok()) return s;
  const RangeSets sets(sink);
  for (const UOp* u : order) {
    if (absl::Status s = VerifyKernelNode(u, sets); !s.ok()) return s;
  }
  if (absl::Status s = VerifySlots(order); !s.ok()) return s;
  std::vector<const UOp*> parts = {sink};
  for (const UOp* s : sink->src()) {
    if (s->op == Op::kPhase || s->op == Op::kSink) parts.push_back(s);
  }
  if (parts.size() > 1) parts.erase(parts.begin());
  for (const UOp* part : parts) {
    if (absl::Status s = VerifyAxes(RangeSets(part).ranges()); !s.ok()) return s;
    if (absl::Status s = VerifyInPlace(Toposort(part), part); !s.ok()) return s;
    if (absl::Status s = VerifyScans(Toposort(part), part); !s.ok()) return s;
    if (absl::Status s = VerifyTemporaries(part); !s.ok()) return s;
  }
  return VerifyAccesses(sink, sets);
}

absl::Status VerifyLowered(const UOp* sink) {
  if (sink->op != Op::kSink) return Fail("a kernel is a sink, not ", NameOf(sink));
  for (const UOp* s : sink->src()) {
    if (s->op != Op::kPhase) return Fail("a lowered kernel has phases, not ", NameOf(s));
  }
  const std::vector<const UOp*> order = Toposort(sink);
  if (absl::Status s = VerifyNodes(order); !s.ok()) return s;
  for (const UOp* u : order) {
    if (u->op == Op::kStage) return Fail(NameOf(u), " is left");
    if (u->op != Op::kReduce && u->op != Op::kScan) continue;
    for (const UOp* r : u->src().subspan(1)) {
      if (!IsRegisterAxis(r->range_type())) return Fail(NameOf(u), " over ", NameOf(r), " is left");
    }
  }
  const RangeSets sets(sink);
  for (const UOp* r : sets.Members(sets.Of(sink))) {
    if (!IsRegisterAxis(r->range_type())) return Fail("no loop binds ", NameOf(r));
  }
  if (absl::Status s = VerifyLoops(order, sets); !s.ok()) return s;
  // Each phase has private memory of its own.
  std::vector<const UOp*> params;
  for (const UOp* u : order) {
    if (u->op == Op::kParam) params.push_back(u);
  }
  if (absl::Status s = VerifySlots(params); !s.ok()) return s;
  for (const UOp* phase : sink->src()) {
    if (absl::Status s = VerifySlots(Toposort(phase)); !s.ok()) return s;
  }
  return VerifyAccesses(sink, sets);
}

absl::Status VerifyExpanded(const UOp* sink) {
  if (absl::Status s = VerifyLowered(sink); !s.ok()) return s;
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kReduce || u->op == Op::kScan) return Fail(NameOf(u), " is left");
    if (u->op == Op::kRange && IsRegisterAxis(u->range_type())) return Fail(NameOf(u), " is left");
  }
  return absl::OkStatus();
}

}  // namespace quern
