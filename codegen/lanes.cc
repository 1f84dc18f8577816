#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/item.h"
#include "codegen/matrix_instructions.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// Costs in instructions. A lane of a gather is a load of its own and some insertion; a block that
// is transposed in registers needs several shuffles for each vector.
constexpr double kGatherLane = 2;
constexpr double kTransposedVector = 5;
constexpr double kCombineLanes = 8;
// A sum beyond those that registers hold is loaded and stored in each pass.
constexpr double kSpilled = 2;

enum class Walk : uint8_t { kFixed, kContiguous, kTransposed, kApart };

struct ItemAccess {
  const UOp* index;
  bool load;
};

// What an item does itself, without the items that it reads.
struct OwnWork {
  std::vector<ItemAccess> accesses;
  std::vector<const UOp*> arithmetic;
};

OwnWork CollectWork(const Item& item) {
  OwnWork work;
  std::vector<const UOp*> stack = {item.node};
  absl::flat_hash_set<const UOp*> seen;
  while (!stack.empty()) {
    const UOp* u = stack.back();
    stack.pop_back();
    if (!seen.insert(u).second) continue;
    if (u != item.node && IsItemNode(u)) continue;
    if (u->op == Op::kIndex) continue;  // Addresses are scalar, whatever the lanes.
    if (u->op == Op::kLoad) work.accesses.push_back({u->src(0), true});
    if (u->op == Op::kStore) work.accesses.push_back({u->src(0), false});
    if (IsElementwise(u->op) && !IsIndex(u->dtype)) work.arithmetic.push_back(u);
    for (const UOp* s : u->src()) stack.push_back(s);
  }
  return work;
}

// The axis that a matrix instruction of this item sums in each lane, if it uses one.
const UOp* SummedInLane(const Item& item, const UOp* lane, const Target& target) {
  if (item.node->op != Op::kReduce || lane == nullptr) return nullptr;
  for (const UOp* r : item.reduce_registers) {
    if (r->range_type() != AxisType::kWarp) continue;
    return UsesMatrixInstruction(item.node->src(0), lane->range_size(), target) ? r : nullptr;
  }
  return nullptr;
}

class LaneChooser {
 public:
  LaneChooser(const RangeSets& sets, const Target& target, std::vector<Item*>& items)
      : sets_(sets), target_(target), items_(items) {
    for (size_t i = 0; i < items.size(); ++i) {
      number_[items[i]] = i;
      work_.push_back(CollectWork(*items[i]));
    }
  }

  void Run() {
    Group();
    for (size_t root = 0; root < items_.size(); ++root) {
      if (Find(root) == root) ChooseForGroup(root);
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      Item& item = *items_[i];
      const UOp* shared = group_lane_[Find(i)];
      item.lane = Has(item, shared) ? shared : BestLocal(i);
    }
  }

  // Whether filling a buffer along `lane` costs less than element by element.
  bool PaysToFill(const Item& item, const UOp* lane) const {
    const size_t i = number_.at(&item);
    return Cost(i, lane) < Cost(i, nullptr);
  }

 private:
  static bool Contains(const std::vector<const UOp*>& ranges, const UOp* r) {
    return std::find(ranges.begin(), ranges.end(), r) != ranges.end();
  }
  static bool Has(const Item& item, const UOp* r) {
    return r != nullptr &&
           (Contains(item.output_registers, r) || Contains(item.reduce_registers, r));
  }
  static bool Accumulates(const Item& item) {
    return item.node->op == Op::kReduce || item.node->op == Op::kScan;
  }
  static bool CanBeLane(const UOp* r) {
    return r->range_size() >= 2 && r->range_type() != AxisType::kWarp;
  }

  // Items joined by an accumulator that has register dimensions form one group.
  void Group() {
    group_.resize(items_.size());
    std::iota(group_.begin(), group_.end(), size_t{0});
    for (size_t i = 0; i < items_.size(); ++i) {
      for (const Item* input : items_[i]->inputs) {
        if (Accumulates(*input) && !input->output_registers.empty()) {
          group_[Find(i)] = Find(number_.at(input));
        }
      }
    }
    group_lane_.assign(items_.size(), nullptr);
  }

  size_t Find(size_t i) const {
    while (group_[i] != i) i = group_[i];
    return i;
  }

  void ChooseForGroup(size_t root) {
    std::vector<const UOp*> candidates;
    std::vector<size_t> members;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (Find(i) != root) continue;
      members.push_back(i);
      for (const auto* axes : {&items_[i]->output_registers, &items_[i]->reduce_registers}) {
        for (const UOp* r : *axes) {
          if (CanBeLane(r) && !Contains(candidates, r)) candidates.push_back(r);
        }
      }
    }
    SortByAxis(candidates);
    double best = 0;
    for (size_t i : members) best += Cost(i, BestLocal(i));
    for (const UOp* r : candidates) {
      double cost = 0;
      for (size_t i : members) cost += Cost(i, Has(*items_[i], r) ? r : BestLocal(i));
      const bool better =
          cost < best * 0.999 || (cost <= best && group_lane_[root] != nullptr &&
                                  r->range_size() > group_lane_[root]->range_size());
      if (!better) continue;
      best = cost;
      group_lane_[root] = r;
    }
  }

  // The best axis that no accumulator of the group has as a dimension.
  const UOp* BestLocal(size_t i) const {
    const Item& item = *items_[i];
    const UOp* best = nullptr;
    double best_cost = Cost(i, nullptr);
    for (const auto* axes : {&item.output_registers, &item.reduce_registers}) {
      for (const UOp* r : *axes) {
        if (!CanBeLane(r) || IsShared(i, r)) continue;
        const double cost = Cost(i, r);
        if (cost >= best_cost) continue;
        best = r;
        best_cost = cost;
      }
    }
    return best;
  }

  bool IsShared(size_t i, const UOp* r) const {
    if (Accumulates(*items_[i]) && Contains(items_[i]->output_registers, r)) {
      return HasReaderInGroup(i);
    }
    for (const Item* input : items_[i]->inputs) {
      if (Accumulates(*input) && Contains(input->output_registers, r)) return true;
    }
    return false;
  }

  bool HasReaderInGroup(size_t i) const {
    for (size_t j = 0; j < items_.size(); ++j) {
      if (j != i && Find(j) == Find(i)) return true;
    }
    return false;
  }

  // --- Costs ---

  Walk WalkAlong(const ItemAccess& access, const UOp* range) const {
    const uint64_t bit = sets_.Bit(range);
    if ((sets_.Of(access.index) & bit) == 0) return Walk::kFixed;
    const LinearForm form = ToLinear(access.index->src(1));
    const int64_t stride = form.CoefficientOf(range);
    bool block = false;
    for (const auto& [term, coefficient] : form.terms) {
      if (term != range && (sets_.Of(term) & bit) != 0) return Walk::kApart;
      block |= access.load && coefficient == 1 && term->op == Op::kRange &&
               IsRegisterAxis(term->range_type()) && term->range_size() >= 4;
    }
    if (stride == 0) return Walk::kFixed;  // Only the gate depends on it.
    if (stride == 1) return Walk::kContiguous;
    // Only whole powers of two are transposed in registers.
    return block && std::has_single_bit(static_cast<uint64_t>(range->range_size()))
               ? Walk::kTransposed
               : Walk::kApart;
  }

  // Copies that unrolling makes of something that depends on the ranges of `set`.
  double Copies(const Item& item, uint64_t set) const {
    double copies = 1;
    for (const auto* axes : {&item.output_registers, &item.reduce_registers}) {
      for (const UOp* r : *axes) {
        if ((set & sets_.Bit(r)) != 0) copies *= static_cast<double>(r->range_size());
      }
    }
    return copies;
  }

  double Registers(const UOp* lane, DType dtype) const {
    const double bytes =
        static_cast<double>(lane->range_size() * std::max(1, ByteSize(dtype.scalar)));
    return std::ceil(bytes / target_.vector_bytes);
  }

  // LLVM keeps vectors that are no power of two element by element from one pass of a loop to the
  // next, unless one register holds them.
  double AccumulatorRegisters(const UOp* lane, DType dtype) const {
    const double registers = Registers(lane, dtype);
    const bool whole = std::has_single_bit(static_cast<uint64_t>(lane->range_size()));
    return whole || registers <= 1 ? registers : static_cast<double>(lane->range_size());
  }

  // Registers that keep the sums of an item from one pass of its loops to the next.
  double Accumulators(const Item& item, const UOp* lane) const {
    if (item.loops.empty() || !item.tile.empty()) return 0;
    const double sums = Copies(item, sets_.Of(item.node));
    if (lane == nullptr || Contains(item.reduce_registers, lane)) return sums;
    const double size = static_cast<double>(lane->range_size());
    return sums / size * AccumulatorRegisters(lane, item.node->dtype);
  }

  // Instructions of all runs of an item with these lanes (nullptr: scalar copies).
  double Cost(size_t i, const UOp* lane) const {
    const Item& item = *items_[i];
    double runs = 1;
    for (const auto* loops : {&item.path, &item.loops}) {
      for (const UOp* r : *loops) runs *= static_cast<double>(r->range_size());
    }
    double cost = 0;
    const double size = lane == nullptr ? 1 : static_cast<double>(lane->range_size());
    // A matrix instruction reads a whole group at once, multiplies and adds it.
    const UOp* summed = SummedInLane(item, lane, target_);
    const double group = summed == nullptr ? 1 : static_cast<double>(summed->range_size());
    for (const ItemAccess& access : work_[i].accesses) {
      const double copies = Copies(item, sets_.Of(access.index)) / group;
      if (lane == nullptr) {
        cost += copies;
        continue;
      }
      switch (WalkAlong(access, lane)) {
        case Walk::kFixed:
          cost += copies;
          break;
        case Walk::kContiguous:
          cost += copies / size * Registers(lane, access.index->dtype);
          break;
        case Walk::kTransposed:
          cost += copies / size * Registers(lane, access.index->dtype) * kTransposedVector;
          break;
        case Walk::kApart:
          cost += copies * kGatherLane;
          break;
      }
    }
    if (summed == nullptr) {
      for (const UOp* u : work_[i].arithmetic) cost += Share(item, u, lane);
    }
    if (item.node->op == Op::kReduce) {
      uint64_t set = sets_.Of(item.node);
      for (const UOp* r : item.reduce_registers) set |= sets_.Bit(r);
      const double copies = Copies(item, set) / group;
      cost +=
          lane == nullptr ? copies : copies / size * AccumulatorRegisters(lane, item.node->dtype);
      cost += kSpilled * std::max(0.0, Accumulators(item, lane) - target_.vector_registers);
    }
    for (const Item* input : item.inputs) {
      if (input->node->op == Op::kStage) cost += Share(item, input->node, lane);
    }
    cost *= runs;
    if (lane != nullptr && Contains(item.reduce_registers, lane)) {
      double outputs = Copies(item, sets_.Of(item.node));
      for (const UOp* r : item.path) outputs *= static_cast<double>(r->range_size());
      cost += outputs * kCombineLanes;
    }
    return cost;
  }

  // Instructions for a value that vectorises with the lanes if it depends on them.
  double Share(const Item& item, const UOp* u, const UOp* lane) const {
    const double copies = Copies(item, sets_.Of(u));
    if (lane == nullptr || !sets_.Depends(u, lane)) return copies;
    return copies / static_cast<double>(lane->range_size()) * Registers(lane, u->dtype);
  }

  const RangeSets& sets_;
  const Target& target_;
  std::vector<Item*>& items_;
  absl::flat_hash_map<const Item*, size_t> number_;
  std::vector<OwnWork> work_;
  std::vector<size_t> group_;
  std::vector<const UOp*> group_lane_;
};

void MoveLast(std::vector<const UOp*>& ranges, const UOp* last) {
  auto at = std::find(ranges.begin(), ranges.end(), last);
  if (at != ranges.end()) std::rotate(at, at + 1, ranges.end());
}

}  // namespace

void ChooseLanes(const RangeSets& sets, const Target& target, std::vector<Item*>& items) {
  LaneChooser chooser(sets, target, items);
  chooser.Run();
  // A staged operand is laid out for the lanes of whoever reads it; it is filled along the same
  // axis if memory allows it, else element by element. What a matrix instruction sums in each lane
  // lies side by side there.
  absl::flat_hash_map<const Item*, const UOp*> innermost;
  for (Item* reader : items) {
    const UOp* summed = SummedInLane(*reader, reader->lane, target);
    for (Item* item : items) {
      if (item->node->op != Op::kStage) continue;
      if (std::find(reader->inputs.begin(), reader->inputs.end(), item) == reader->inputs.end()) {
        continue;
      }
      const std::vector<const UOp*>& axes = item->output_registers;
      const bool has = std::find(axes.begin(), axes.end(), reader->lane) != axes.end();
      item->lane = has ? reader->lane : nullptr;
      if (summed != nullptr) innermost[item] = summed;
    }
  }
  for (Item* item : items) {
    MoveLast(item->output_registers, item->lane);
    if (auto found = innermost.find(item); found != innermost.end()) {
      MoveLast(item->output_registers, found->second);
    }
    if (item->node->op == Op::kStage && item->lane != nullptr &&
        !chooser.PaysToFill(*item, item->lane)) {
      item->lane = nullptr;
    }
  }
}

}  // namespace quern
