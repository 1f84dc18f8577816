#include "codegen/statement_places.h"

#include <algorithm>

#include "rewrite/range_sets.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

// As deep as the loops of a kernel: at most 64.
const UOp* Write(UOpGraph& g, const PlacedStatement& s) {
  if (s.store != nullptr) return s.store;
  Ranges sources;
  if (s.range != nullptr) sources.push_back(s.range);
  for (const PlacedStatement& inner : s.inner) sources.push_back(Write(g, inner));
  return g.Make(s.range != nullptr ? Op::kLoop : Op::kBlock, kVoidType, sources);
}

Ranges RegistersOf(const UOp* store) {
  Ranges registers;
  for (const UOp* u : Toposort(store)) {
    if (u->op == Op::kRange && IsRegisterAxis(u->range_type())) registers.push_back(u);
  }
  SortByAxis(registers);
  MoveLanesLast(registers);
  return registers;
}

void Find(PlacedStatement& s, const std::function<bool(const UOp*)>& wanted, Ranges& loops,
          std::vector<StorePlace>& places) {
  if (s.range != nullptr) loops.push_back(s.range);
  for (size_t i = 0; i < s.inner.size(); ++i) {
    const UOp* store = s.inner[i].store;
    if (store == nullptr) {
      Find(s.inner[i], wanted, loops, places);
    } else if (wanted(store)) {
      places.push_back({&s, i, store, loops, RegistersOf(store)});
    }
  }
  if (s.range != nullptr) loops.pop_back();
}

}  // namespace

PlacedStatement ReadStatements(const UOp* phase) {
  PlacedStatement s;
  if (phase->op == Op::kStore) {
    s.store = phase;
    return s;
  }
  if (phase->op == Op::kLoop) s.range = phase->src(0);
  for (const UOp* source : phase->src().subspan(s.range == nullptr ? 0 : 1)) {
    s.inner.push_back(ReadStatements(source));
  }
  return s;
}

const UOp* WriteStatements(UOpGraph& graph, const PlacedStatement& root, const UOp* phase) {
  Ranges sources;
  for (const PlacedStatement& inner : root.inner) sources.push_back(Write(graph, inner));
  return WithSources(graph, phase, sources);
}

std::vector<StorePlace> FindStores(PlacedStatement& statement,
                                   const std::function<bool(const UOp*)>& wanted) {
  std::vector<StorePlace> places;
  Ranges loops;
  Find(statement, wanted, loops, places);
  return places;
}

void AddWritten(const PlacedStatement& statement, absl::flat_hash_set<const UOp*>& buffers) {
  if (statement.store != nullptr) buffers.insert(statement.store->src(0)->src(0));
  for (const PlacedStatement& inner : statement.inner) AddWritten(inner, buffers);
}

void MoveLanesLast(std::vector<const UOp*>& ranges) {
  auto lanes = std::find_if(ranges.begin(), ranges.end(),
                            [](const UOp* r) { return r->range_type() == AxisType::kLane; });
  if (lanes != ranges.end()) std::rotate(lanes, lanes + 1, ranges.end());
}

}  // namespace quern
