#include "codegen/shared_loops.h"

#include <algorithm>

#include "rewrite/temporaries.h"

namespace quern {

std::vector<const UOp*> FindSharedLoops(const UOp* sink, const RangeSets& sets) {
  const std::vector<const UOp*> alike = SharedRanges(sink);
  std::vector<const UOp*> shared;
  for (const UOp* store : sink->src()) {
    std::vector<const UOp*> loops = sets.Members(sets.Of(store));
    std::erase_if(loops, [](const UOp* r) { return IsRegisterAxis(r->range_type()); });
    if (store == sink->src(0)) shared = loops;
    size_t n = 0;
    while (n < shared.size() && n < loops.size() && shared[n] == loops[n] &&
           std::find(alike.begin(), alike.end(), loops[n]) != alike.end()) {
      ++n;
    }
    shared.resize(n);
  }
  return shared;
}

void FindOwners(std::deque<Item>& items) {
  constexpr int kNobody = -2, kSeveral = -1;
  int stores = 0;
  for (Item& item : items) item.owner = item.node->op == Op::kStore ? stores++ : kNobody;
  for (size_t i = items.size(); i-- > 0;) {
    for (const Item* input : items[i].inputs) {
      int& owner = items[input->number].owner;
      owner = owner == kNobody || owner == items[i].owner ? items[i].owner : kSeveral;
    }
  }
}

bool LeaveWaiting(const std::deque<Item>& items, std::vector<const UOp*>& shared) {
  bool found = false;
  for (const Item& item : items) {
    if (!item.reads_temporary || item.path.size() >= shared.size()) continue;
    shared.resize(item.path.size());
    found = true;
  }
  return found;
}

std::vector<Item*> ItemsAhead(std::deque<Item>& items, const std::vector<const UOp*>& shared) {
  std::vector<Item*> ahead;
  for (Item& item : items) {
    const bool further_out = item.node->op != Op::kStore && item.path.size() < shared.size();
    if (further_out) ahead.push_back(&item);
  }
  std::sort(ahead.begin(), ahead.end(), [](const Item* a, const Item* b) {
    if (a->path.size() != b->path.size()) return a->path.size() < b->path.size();
    return a->number < b->number;
  });
  return ahead;
}

}  // namespace quern
