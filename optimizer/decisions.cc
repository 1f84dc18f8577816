#include "optimizer/decisions.h"

#include <algorithm>

#include "rewrite/concat.h"

namespace quern {

int Decisions::Choose(std::string_view name, int ways) {
  if (ways < 2) return 0;
  const int count = ++counts_[std::string(name)];
  std::string numbered = count == 1 ? std::string(name) : Concat(name, " ", count);
  int way = 0;
  if (const auto deviation = deviations_.find(numbered); deviation != deviations_.end()) {
    way = std::clamp(deviation->second, 0, ways - 1);
  }
  taken_.push_back({std::move(numbered), way, ways});
  return way;
}

std::vector<Deviations> Decisions::Neighbours() const {
  int most = 0;
  for (const Taken& t : taken_) most = std::max(most, t.ways);
  // Deviations that this run never met mean nothing.
  Deviations own;
  for (const Taken& t : taken_) {
    if (t.way != 0) own[t.name] = t.way;
  }
  std::vector<Deviations> all;
  for (int way = 0; way < most; ++way) {
    for (const Taken& t : taken_) {
      if (way >= t.ways || way == t.way) continue;
      Deviations changed = own;
      if (way == 0) {
        changed.erase(t.name);
      } else {
        changed[t.name] = way;
      }
      all.push_back(std::move(changed));
    }
  }
  return all;
}

}  // namespace quern
