#include "codegen/linearize.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/fill_blocks.h"
#include "codegen/item.h"
#include "codegen/lowered_kernel.h"
#include "codegen/row_major.h"
#include "codegen/scan_loops.h"
#include "codegen/shared_loops.h"
#include "codegen/statement_tree.h"
#include "rewrite/build.h"
#include "rewrite/kernel_flags.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

Ranges Join(const Ranges& a, const Ranges& b) {
  Ranges all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Ranges Filter(const Ranges& ranges, bool registers) {
  Ranges kept;
  for (const UOp* r : ranges) {
    if (IsRegisterAxis(r->range_type()) == registers) kept.push_back(r);
  }
  return kept;
}

bool Contains(const Ranges& ranges, const UOp* r) {
  return std::find(ranges.begin(), ranges.end(), r) != ranges.end();
}

int64_t Volume(const Ranges& ranges) {
  int64_t volume = 1;
  for (const UOp* r : ranges) volume *= r->range_size();
  return volume;
}

class Linearizer {
 public:
  // Packed buffers that outlive the run are params, with slots from `next_packed` on.
  Linearizer(UOpGraph& graph, const UOp* sink, const Target& target, int64_t& next_packed)
      : g_(graph), sink_(sink), target_(target), next_packed_(next_packed), sets_(sink) {}

  // Appends the phase, after one that fills what is packed once if there is any.
  void Run(std::vector<const UOp*>& phases) {
    CollectItems();
    PlaceAll();
    std::vector<Item*> all;
    for (Item& item : items_) all.push_back(&item);
    ChooseLanes(sets_, target_, all);
    for (Item* item : ItemsAhead(items_, shared_loops_)) Emit(*item);
    for (Item& item : items_) {
      if (item.node->op == Op::kStore) Emit(item);
    }
    const UOp* once = once_tree_.Build(g_);
    if (once->source_count > 0) {
      phases.push_back(g_.Make(Op::kPhase, kVoidType, once->src(), {kOnceFlag, 0}));
    }
    const UOp* body = tree_.Build(g_);
    phases.push_back(
        g_.Make(Op::kPhase, kVoidType, body->src(), {sink_->arg.a & kPartByPartFlag, 0}));
  }

 private:
  // Items in topological order, each with the items that it reads directly.
  void CollectItems() {
    const std::vector<const UOp*> order = Toposort(sink_);
    for (const UOp* u : order) {
      if (!IsItemNode(u)) continue;
      Item& item = items_.emplace_back();
      item.node = u;
      item.number = items_.size() - 1;
      by_node_[u] = &item;
      absl::flat_hash_set<const UOp*> seen;
      Ranges stack(u->src().begin(), u->src().end());
      while (!stack.empty()) {
        const UOp* v = stack.back();
        stack.pop_back();
        if (!seen.insert(v).second) continue;
        if (IsItemNode(v)) {
          item.inputs.push_back(by_node_.at(v));
          readers_[by_node_.at(v)].push_back(&item);
        } else {
          item.reads_temporary |= v->op == Op::kLoad && v->src(0)->src(0)->op == Op::kScratch;
          for (const UOp* s : v->src()) stack.push_back(s);
        }
      }
      for (const Item* input : item.inputs) item.reads_temporary |= input->reads_temporary;
      std::sort(item.inputs.begin(), item.inputs.end(),
                [](const Item* a, const Item* b) { return a->node->id < b->node->id; });
    }
  }

  // Stores of a kernel with temporaries share their outermost loops (shared_loops.h).
  void PlaceAll() {
    for (const UOp* u : Toposort(sink_)) {
      if (u->op == Op::kScratch) next_scratch_ = std::max(next_scratch_, u->slot() + 1);
    }
    const bool temporaries = next_scratch_ > 0;
    if (temporaries) {
      FindOwners(items_);
      shared_loops_ = FindSharedLoops(sink_, sets_);
    }
    do {
      for (size_t i = items_.size(); i-- > 0;) Place(items_[i]);
    } while (temporaries && LeaveWaiting(items_, shared_loops_));
    if (temporaries) tree_ = StatementTree(shared_loops_.size());
  }

  // Decides path and loops; consumers are placed already.
  void Place(Item& item) {
    const UOp* node = item.node;
    item.tile.clear();
    item.reduce_registers.clear();
    const Ranges free = sets_.Members(sets_.Of(node));
    Ranges outside = Filter(free, /*registers=*/false);
    item.output_registers = Filter(free, /*registers=*/true);
    if (node->op == Op::kStore) {
      item.path = outside;
      return;
    }
    Ranges own(node->src().begin() + 1, node->src().end());
    if (node->op == Op::kScan) own.clear();  // It closes none of them.
    item.loops = Filter(own, /*registers=*/false);
    SortByAxis(item.loops);
    if (node->op == Op::kStage) {
      // The ranges of a STAGE are free in it, but they are its buffer's dimensions.
      std::erase_if(outside, [&](const UOp* r) { return Contains(item.loops, r); });
      item.once = (node->arg.a & kOnceFlag) != 0;
      if (item.once) {
        item.loops = Join(outside, item.loops);
        SortByAxis(item.loops);
        return;
      }
    } else {
      item.reduce_registers = Filter(own, /*registers=*/true);
      if (!item.loops.empty()) {
        const int first = item.loops.front()->range_axis();
        for (const UOp* r : outside) {
          if (r->range_axis() > first) item.tile.push_back(r);
        }
        std::erase_if(outside, [&](const UOp* r) { return Contains(item.tile, r); });
        item.loops = Join(item.loops, item.tile);
        SortByAxis(item.loops);
      }
    }
    // The shortest part that is common to the loops around all readers and binds what is needed.
    Ranges common;
    bool first = true;
    for (const Item* reader : readers_[&item]) {
      const Ranges around = Join(reader->path, reader->loops);
      if (first) {
        common = around;
        first = false;
      } else {
        size_t n = 0;
        while (n < common.size() && n < around.size() && common[n] == around[n]) ++n;
        common.resize(n);
      }
    }
    if (item.owner < 0) common.resize(std::min(common.size(), shared_loops_.size()));
    size_t length = 0;
    for (size_t i = 0; i < common.size(); ++i) {
      // Threads share no scratch memory, so everything stands inside the loop over threads.
      if (Contains(outside, common[i]) || common[i]->range_type() == AxisType::kThread) {
        length = i + 1;
      }
    }
    common.resize(length);
    if (node->op == Op::kScan) KeepInSequence(node, outside, common);
    // Readers under different loops: the result waits for them in a tile over what they do not
    // share.
    bool waits = false;
    for (const UOp* r : outside) {
      if (Contains(common, r)) continue;
      waits = true;
      item.loops.push_back(r);
      if (node->op != Op::kStage) item.tile.push_back(r);
    }
    if (waits) {
      SortByAxis(item.loops);
      SortByAxis(item.tile);
    }
    item.path = std::move(common);
  }

  // --- Statements ---

  void Emit(Item& item) {
    if (!emitted_.insert(&item).second) return;
    EmitInputs(item, item.path);
    switch (item.node->op) {
      case Op::kStore:
        EmitStore(item);
        break;
      case Op::kStage:
        EmitStage(item);
        break;
      case Op::kScan:
        EmitScan(item);
        break;
      default:
        EmitReduce(item);
    }
  }

  // Emits what `item` needs, directly or not, as far as it stands under the loops `around`. What
  // stands further out goes first: coming back to an outer loop would end the inner ones.
  void EmitInputs(const Item& item, const Ranges& around) {
    std::vector<Item*> needed;
    absl::flat_hash_set<const Item*> seen;
    std::vector<const Item*> stack(item.inputs.begin(), item.inputs.end());
    while (!stack.empty()) {
      const Item* input = stack.back();
      stack.pop_back();
      if (!seen.insert(input).second) continue;
      stack.insert(stack.end(), input->inputs.begin(), input->inputs.end());
      const bool inside = input->path.size() <= around.size() &&
                          std::equal(input->path.begin(), input->path.end(), around.begin());
      if (inside && !emitted_.contains(input)) needed.push_back(by_node_.at(input->node));
    }
    std::sort(needed.begin(), needed.end(), [](const Item* a, const Item* b) {
      if (a->path.size() != b->path.size()) return a->path.size() < b->path.size();
      return a->number < b->number;
    });
    for (Item* input : needed) Emit(*input);
  }

  void EmitDeeperInputs(const Item& item) { EmitInputs(item, Join(item.path, item.loops)); }

  // `u` with the items below it replaced by reads of their results, and the lane axis marked.
  const UOp* Resolve(const Item& item, const UOp* u) {
    Ranges from;
    Ranges to;
    for (const Item* input : item.inputs) {
      from.push_back(input->node);
      to.push_back(input->result);
    }
    return Substitute(g_, u, from, to);
  }

  const UOp* MarkLane(const Item& item, const UOp* statement) {
    if (item.lane == nullptr) return statement;
    const UOp* lane = Range(g_, item.lane->range_size(), item.lane->range_axis(), AxisType::kLane);
    return Substitute(g_, statement, {{item.lane}}, {{lane}});
  }

  void AddStatement(const Item& item, const Ranges& loops, const UOp* statement, bool closes) {
    tree_.Add(item, Join(item.path, loops), MarkLane(item, statement), closes ? &loops : nullptr);
  }

  void EmitStore(Item& item) {
    if (stored_by_reduction_.contains(item.node)) return;
    const UOp* store = item.node;
    AddStatement(item, {}, Store(g_, Resolve(item, store->src(0)), Resolve(item, store->src(1))),
                 /*closes=*/false);
  }

  void EmitStage(Item& item) {
    EmitDeeperInputs(item);
    // Loops first, then registers; among those, the axes of reductions run slower.
    Ranges dimensions = item.loops;
    for (const UOp* r : item.output_registers) dimensions.push_back(r);
    const UOp* buffer = item.once
                            ? Param(g_, item.node->dtype, next_packed_++, Volume(dimensions))
                            : Scratch(g_, item.node->dtype, next_scratch_++, Volume(dimensions));
    const UOp* index = Index(g_, buffer, RowMajorOffset(g_, dimensions));
    const UOp* fill = Store(g_, index, Resolve(item, item.node->src(0)));
    item.result = Load(g_, index);
    const FillContext context = {g_, sets_, [this] { return NextAxis(); }};
    for (FillPart& part : CutIntoBlocks(context, item, fill)) {
      item.lane = part.lane;
      AddFill(item, std::move(part.loops), part.statement);
    }
  }

  void AddFill(const Item& item, Ranges loops, const UOp* fill) {
    if (item.once) {
      // One thread fills it, once.
      for (const UOp*& r : loops) {
        if (r->range_type() != AxisType::kThread) continue;
        const UOp* loop = Range(g_, r->range_size(), r->range_axis(), AxisType::kLoop);
        fill = Substitute(g_, fill, {{r}}, {{loop}});
        r = loop;
      }
    }
    (item.once ? once_tree_ : tree_)
        .Add(item, Join(item.path, loops), MarkLane(item, fill), &loops);
  }

  void EmitReduce(Item& item) {
    if (!item.tile.empty()) return EmitTileReduce(item);
    const Op op = item.node->reduce_op();
    const DType dtype = item.node->dtype;
    // Partial results live side by side over GROUP axes and over a reduced lane axis.
    Ranges partial;
    Ranges in_order;
    for (const UOp* r : item.reduce_registers) {
      const bool apart = r == item.lane || r->range_type() == AxisType::kGroupReduce;
      (apart ? partial : in_order).push_back(r);
    }
    if (item.loops.empty()) {
      EmitDeeperInputs(item);
      const UOp* value = Resolve(item, item.node->src(0));
      const UOp* index = RegisterIndex(dtype, item.output_registers);
      AddStatement(item, {}, Store(g_, index, ReduceOver(op, value, item.reduce_registers)), false);
      item.result = Load(g_, index);
      return;
    }
    // partial axes before the output's, so that the lanes are last if an output axis has them.
    Ranges dimensions = item.output_registers;
    dimensions.insert(dimensions.begin(), partial.begin(), partial.end());
    if (Contains(partial, item.lane)) {
      std::erase(dimensions, item.lane);
      dimensions.push_back(item.lane);
    }
    const UOp* index = RegisterIndex(dtype, dimensions);
    AddStatement(item, {}, Store(g_, index, ReduceIdentity(g_, op, dtype)), false);
    EmitDeeperInputs(item);
    const UOp* value = ReduceOver(op, Resolve(item, item.node->src(0)), in_order);
    AddStatement(item, item.loops, Store(g_, index, Binary(g_, op, Load(g_, index), value)), true);
    item.result = Load(g_, index);
    if (partial.empty()) return;
    const UOp* combined = RegisterIndex(dtype, item.output_registers);
    AddStatement(item, {}, Store(g_, combined, ReduceOver(op, item.result, partial)), false);
    item.result = Load(g_, combined);
  }

  // The reduce loops run around output loops: partial sums wait in a tile over those.
  void EmitTileReduce(Item& item) {
    const Op op = item.node->reduce_op();
    const DType dtype = item.node->dtype;
    EmitDeeperInputs(item);
    const UOp* is_later = IsLater(g_, item.node->src().subspan(1));
    const UOp* target = nullptr;
    if (const UOp* store = DirectStore(item)) {
      target = store->src(0);
      stored_by_reduction_.insert(store);
    } else {
      Ranges dimensions = Join(item.tile, item.output_registers);
      const UOp* buffer = Scratch(g_, dtype, next_scratch_++, Volume(dimensions));
      target = Index(g_, buffer, RowMajorOffset(g_, dimensions));
    }
    const UOp* value = ReduceOver(op, Resolve(item, item.node->src(0)), item.reduce_registers);
    if (is_later != nullptr) {
      // The first pass reads nothing: the gate gives 0, which only a sum may start from.
      const UOp* gate = is_later;
      if (target->source_count == 3) gate = And(g_, target->src(2), is_later);
      const UOp* before = Load(g_, Index(g_, target->src(0), target->src(1), gate));
      if (op != Op::kAdd) before = Where(g_, is_later, before, ReduceIdentity(g_, op, dtype));
      value = Binary(g_, op, before, value);
    }
    AddStatement(item, item.loops, Store(g_, target, value), true);
    item.result = Load(g_, Index(g_, target->src(0), target->src(1)));
  }

  // The carry, at each place first read, then combined with the value there.
  void EmitScan(Item& item) {
    EmitDeeperInputs(item);
    const Op op = item.node->reduce_op();
    const DType dtype = item.node->dtype;
    const Ranges carries = LoopsInside(item.node, Join(item.path, item.loops));
    const UOp* carry = Kept(dtype, carries, item.output_registers);
    const UOp* result = Kept(dtype, item.tile, item.output_registers);
    const UOp* before = Where(g_, IsLater(g_, item.node->src().subspan(1)), Load(g_, carry),
                              ReduceIdentity(g_, op, dtype));
    item.result = Load(g_, result);
    const UOp* after = Binary(g_, op, item.result, Resolve(item, item.node->src(0)));
    AddStatement(item, item.loops, Store(g_, result, before), !item.loops.empty());
    AddStatement(item, item.loops, Store(g_, carry, after), !item.loops.empty());
  }

  // Registers, or scratch memory if they have to last over loops.
  const UOp* Kept(DType dtype, const Ranges& loops, const Ranges& registers) {
    if (loops.empty()) return RegisterIndex(dtype, registers);
    const Ranges dimensions = Join(loops, registers);
    const UOp* buffer = Scratch(g_, dtype, next_scratch_++, Volume(dimensions));
    return Index(g_, buffer, RowMajorOffset(g_, dimensions));
  }

  // The STORE that only copies this reduction to the output, if there is one and nobody else reads.
  const UOp* DirectStore(const Item& item) {
    const std::vector<Item*>& readers = readers_[&item];
    if (readers.size() != 1 || readers[0]->node->op != Op::kStore) return nullptr;
    const UOp* store = readers[0]->node;
    if (store->src(1) != item.node) return nullptr;
    // A store that runs over more than the reduction copies it to many places.
    if (sets_.Of(store) != sets_.Of(item.node)) return nullptr;
    // An output that the kernel also reads keeps its old value until the end.
    for (const UOp* u : Toposort(sink_)) {
      if (u->op == Op::kLoad && u->src(0)->src(0) == store->src(0)->src(0)) return nullptr;
    }
    return store;
  }

  // An axis number that no range has.
  int NextAxis() {
    if (next_axis_ < 0) {
      next_axis_ = sets_.ranges().empty() ? 0 : sets_.ranges().back()->range_axis() + 1;
    }
    return next_axis_++;
  }

  const UOp* RegisterIndex(DType dtype, const Ranges& dimensions) {
    const UOp* buffer = Register(g_, dtype, next_register_++, Volume(dimensions));
    return Index(g_, buffer, RowMajorOffset(g_, dimensions));
  }

  const UOp* ReduceOver(Op op, const UOp* value, const Ranges& ranges) {
    return ranges.empty() ? value : Reduce(g_, op, value, ranges);
  }

  UOpGraph& g_;
  const UOp* sink_;
  const Target& target_;
  int64_t& next_packed_;
  RangeSets sets_;
  std::deque<Item> items_;
  absl::flat_hash_map<const UOp*, Item*> by_node_;
  absl::flat_hash_map<const Item*, std::vector<Item*>> readers_;
  absl::flat_hash_set<const Item*> emitted_;
  absl::flat_hash_set<const UOp*> stored_by_reduction_;
  Ranges shared_loops_;  // of the stores of a kernel with temporaries, outermost first
  StatementTree tree_;
  StatementTree once_tree_;
  int64_t next_scratch_ = 0;
  int64_t next_register_ = 0;
  int next_axis_ = -1;
};

}  // namespace

const UOp* Linearize(UOpGraph& graph, const UOp* sink, const Target& target) {
  std::vector<const UOp*> phases;
  int64_t next_packed = kFirstPackedSlot;
  for (const UOp* phase : sink->src()) {
    Linearizer(graph, phase, target, next_packed).Run(phases);
  }
  return Sink(graph, phases);
}

}  // namespace quern
