#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "codegen/item.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// How good it is to walk along `range` in one access: contiguous lanes are one instruction, equal
// lanes a broadcast, other strides and gathers cost a load per lane.
constexpr int kContiguous = 4;
constexpr int kTransposed = 1;  // a block, contiguous along another register axis
constexpr int kStrided = -3;
constexpr int kGathered = -4;

int AccessScore(const RangeSets& sets, const UOp* index, bool load, const UOp* range) {
  const uint64_t bit = sets.Bit(range);
  if ((sets.Of(index) & bit) == 0) return 0;
  const LinearForm form = ToLinear(index->src(1));
  int64_t stride = 0;
  for (const auto& [term, coefficient] : form.terms) {
    if (term == range) {
      stride = coefficient;
    } else if ((sets.Of(term) & bit) != 0) {
      return kGathered;
    }
  }
  if (stride == 0) return 0;  // Only the gate depends on it.
  if (stride == 1) return kContiguous;
  for (const auto& [term, coefficient] : form.terms) {
    const bool block = load && coefficient == 1 && term->op == Op::kRange &&
                       IsRegisterAxis(term->range_type()) && term->range_size() >= 4;
    if (block) return kTransposed;
  }
  return kStrided;
}

struct ItemAccess {
  const UOp* index;
  bool load;
};

// The accesses of an item itself, not those of the items that it reads.
std::vector<ItemAccess> OwnAccesses(const Item& item) {
  std::vector<ItemAccess> accesses;
  std::vector<const UOp*> stack = {item.node};
  std::vector<const UOp*> seen;
  while (!stack.empty()) {
    const UOp* u = stack.back();
    stack.pop_back();
    if (std::find(seen.begin(), seen.end(), u) != seen.end()) continue;
    seen.push_back(u);
    if (u != item.node && (u->op == Op::kReduce || u->op == Op::kStage)) continue;
    if (u->op == Op::kLoad) accesses.push_back({u->src(0), true});
    if (u->op == Op::kStore) accesses.push_back({u->src(0), false});
    for (const UOp* s : u->src()) stack.push_back(s);
  }
  return accesses;
}

using Scores = std::vector<std::pair<const UOp*, int>>;

Scores ScoreItem(const RangeSets& sets, const Item& item) {
  Scores scores;
  const std::vector<ItemAccess> accesses = OwnAccesses(item);
  for (const std::vector<const UOp*>* axes : {&item.output_registers, &item.reduce_registers}) {
    for (const UOp* r : *axes) {
      int score = 0;
      for (const ItemAccess& a : accesses) score += AccessScore(sets, a.index, a.load, r);
      scores.emplace_back(r, score);
    }
  }
  return scores;
}

const UOp* Best(const Scores& scores) {
  const UOp* best = nullptr;
  int best_score = 0;
  for (const auto& [range, score] : scores) {
    if (range->range_size() < 2 || score <= 0) continue;
    if (range->range_type() == AxisType::kWarp) continue;
    const bool better = best == nullptr || score > best_score ||
                        (score == best_score && range->range_size() > best->range_size());
    if (better) {
      best = range;
      best_score = score;
    }
  }
  return best;
}

bool Contains(const std::vector<const UOp*>& ranges, const UOp* r) {
  return std::find(ranges.begin(), ranges.end(), r) != ranges.end();
}

}  // namespace

void ChooseLanes(const RangeSets& sets, std::vector<Item*>& items) {
  // Items joined by an accumulator that has register dimensions form one group.
  absl::flat_hash_map<const Item*, size_t> number;
  for (size_t i = 0; i < items.size(); ++i) number[items[i]] = i;
  std::vector<size_t> group(items.size());
  std::iota(group.begin(), group.end(), size_t{0});
  auto find = [&](size_t i) {
    while (group[i] != i) i = group[i];
    return i;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    for (const Item* input : items[i]->inputs) {
      if (input->node->op == Op::kReduce && !input->output_registers.empty()) {
        group[find(i)] = find(number.at(input));
      }
    }
  }
  std::vector<Scores> scores;
  for (const Item* item : items) scores.push_back(ScoreItem(sets, *item));

  std::vector<const UOp*> group_lane(items.size(), nullptr);
  for (size_t root = 0; root < items.size(); ++root) {
    if (find(root) != root) continue;
    Scores total;
    for (size_t i = 0; i < items.size(); ++i) {
      if (find(i) != root) continue;
      // What runs inside more loops counts for more.
      const int weight = 1 + static_cast<int>(items[i]->path.size() + items[i]->loops.size());
      for (const auto& [range, score] : scores[i]) {
        auto at = std::find_if(total.begin(), total.end(),
                               [&, r = range](const auto& t) { return t.first == r; });
        if (at == total.end()) {
          total.emplace_back(range, score * weight);
        } else {
          at->second += score * weight;
        }
      }
    }
    group_lane[root] = Best(total);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    Item& item = *items[i];
    const UOp* shared = group_lane[find(i)];
    if (shared != nullptr &&
        (Contains(item.output_registers, shared) || Contains(item.reduce_registers, shared))) {
      item.lane = shared;
      continue;
    }
    // An axis of its own: one that no accumulator of the group has as a dimension.
    Scores local;
    for (const auto& [range, score] : scores[i]) {
      bool is_shared = false;
      for (size_t j = 0; j < items.size(); ++j) {
        if (j == i || find(j) != find(i)) continue;
        is_shared |=
            items[j]->node->op == Op::kReduce && Contains(items[j]->output_registers, range);
      }
      if (!is_shared) local.emplace_back(range, score);
    }
    item.lane = Best(local);
  }
  // A staged operand is laid out for the lanes of whoever reads it; it is filled along the same
  // axis if memory allows it, else element by element.
  for (Item* reader : items) {
    for (Item* item : items) {
      if (item->node->op != Op::kStage) continue;
      if (std::find(reader->inputs.begin(), reader->inputs.end(), item) == reader->inputs.end()) {
        continue;
      }
      item->lane = Contains(item->output_registers, reader->lane) ? reader->lane : nullptr;
    }
  }
  for (Item* item : items) {
    auto lane = std::find(item->output_registers.begin(), item->output_registers.end(), item->lane);
    if (lane != item->output_registers.end()) {
      std::rotate(lane, lane + 1, item->output_registers.end());
    }
    if (item->node->op == Op::kStage && item->lane != nullptr) {
      int score = 0;
      for (const ItemAccess& a : OwnAccesses(*item)) {
        score += AccessScore(sets, a.index, a.load, item->lane);
      }
      if (score <= 0) item->lane = nullptr;
    }
  }
}

}  // namespace quern
