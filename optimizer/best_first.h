#ifndef QUERN_OPTIMIZER_BEST_FIRST_H_
#define QUERN_OPTIMIZER_BEST_FIRST_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace quern {

/// The items by what `cost` says of each, the lowest first; equal ones stay in their order. No more
/// than `most`.
template <typename T, typename Cost>
std::vector<T> BestFirst(const std::vector<T>& items, size_t most, Cost cost) {
  std::vector<std::pair<decltype(cost(items[0])), size_t>> keys;
  for (size_t i = 0; i < items.size(); ++i) keys.emplace_back(cost(items[i]), i);
  std::sort(keys.begin(), keys.end());
  if (keys.size() > most) keys.resize(most);
  std::vector<T> sorted;
  for (const auto& [key, i] : keys) sorted.push_back(items[i]);
  return sorted;
}

}  // namespace quern

#endif  // QUERN_OPTIMIZER_BEST_FIRST_H_
