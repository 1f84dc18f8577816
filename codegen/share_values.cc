#include "codegen/share_values.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/row_major.h"
#include "codegen/statement_places.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

// What writing a value and reading it again may cost, in operations.
constexpr double kLeastCost = 8;

double CostOf(const UOp* u) {
  if (IsIndex(u->dtype)) return 0;
  if (u->op == Op::kDiv || u->op == Op::kSqrt) return kLeastCost;
  if (u->op == Op::kLoad) return 1;
  return IsElementwise(u->op) && u->op != Op::kConst ? 1 : 0;
}

bool IsExpensive(const UOp* store) {
  double cost = 0;
  for (const UOp* u : Toposort(store->src(1))) cost += CostOf(u);
  return cost >= kLeastCost;
}

// Axes around one place and those that they become around another.
struct Renaming {
  Ranges from;
  Ranges to;
  Ranges common;  // register axes of both

  bool Match(const Ranges& a, const Ranges& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool lane = a[i]->range_type() == AxisType::kLane;
      if (a[i]->range_size() != b[i]->range_size()) return false;
      if (lane != (b[i]->range_type() == AxisType::kLane)) return false;
      // Threads share no scratch memory.
      if (a[i]->range_type() == AxisType::kThread) return false;
      if (b[i]->range_type() == AxisType::kThread) return false;
      from.push_back(a[i]);
      to.push_back(b[i]);
    }
    return true;
  }
};

std::optional<Renaming> Rename(const StorePlace& a, const StorePlace& b) {
  Renaming r;
  Ranges own_a;
  Ranges own_b;
  for (const UOp* x : a.registers) {
    const bool both = std::find(b.registers.begin(), b.registers.end(), x) != b.registers.end();
    (both ? r.common : own_a).push_back(x);
  }
  for (const UOp* x : b.registers) {
    if (std::find(r.common.begin(), r.common.end(), x) == r.common.end()) own_b.push_back(x);
  }
  if (!r.Match(a.loops, b.loops) || !r.Match(own_a, own_b)) return std::nullopt;
  return r;
}

class Sharer {
 public:
  Sharer(UOpGraph& graph, const UOp* phase, int64_t most_bytes, int64_t stream_bytes)
      : g_(graph),
        bytes_left_(most_bytes),
        stream_bytes_(stream_bytes),
        root_(ReadStatements(phase)) {
    for (const UOp* u : Toposort(phase)) {
      if (u->op == Op::kScratch) next_slot_ = std::max(next_slot_, u->slot() + 1);
      if (u->op == Op::kStore) ++writers_[u->src(0)->src(0)];
      if (u->op == Op::kLoad) loaded_.insert(u->src(0)->src(0));
    }
  }

  const UOp* Run(const UOp* phase) {
    constexpr int kMostBuffers = 8;
    int shared = 0;
    while (shared < kMostBuffers && ShareUnder(root_)) ++shared;
    return shared == 0 ? phase : WriteStatements(g_, root_, phase);
  }

 private:
  // Shares one value between two loops that stand next to each other or apart in `s`.
  bool ShareUnder(PlacedStatement& s) {
    std::vector<std::vector<StorePlace>> places(s.inner.size());
    for (size_t i = 0; i < s.inner.size(); ++i) {
      if (s.inner[i].store == nullptr) places[i] = FindStores(s.inner[i], IsExpensive);
    }
    for (size_t j = 1; j < s.inner.size(); ++j) {
      absl::flat_hash_set<const UOp*> written;
      if (places[j].empty()) continue;
      AddWritten(s.inner[j], written);
      for (size_t i = j; i-- > 0;) {
        AddWritten(s.inner[i], written);
        for (const StorePlace& first : places[i]) {
          for (const StorePlace& second : places[j]) {
            if (Share(first, second, written)) return true;
          }
        }
      }
    }
    for (PlacedStatement& inner : s.inner) {
      if (inner.store == nullptr && ShareUnder(inner)) return true;
    }
    return false;
  }

  bool Share(const StorePlace& first, const StorePlace& second,
             const absl::flat_hash_set<const UOp*>& written) {
    const std::optional<Renaming> renaming = Rename(first, second);
    if (!renaming) return false;
    // What values of the first place are called at the second, unless they would not be the same.
    absl::flat_hash_map<const UOp*, const UOp*> renamed;
    absl::flat_hash_map<const UOp*, const UOp*> original;
    for (size_t i = 0; i < renaming->from.size(); ++i) {
      renamed[renaming->from[i]] = renaming->to[i];
    }
    Ranges sources;
    for (const UOp* u : Toposort(first.store->src(1))) {
      if (renamed.contains(u)) continue;
      if (u->op == Op::kLoad && IsWritten(u->src(0)->src(0), written)) continue;
      sources.clear();
      for (const UOp* s : u->src()) {
        auto found = renamed.find(s);
        if (found != renamed.end()) sources.push_back(found->second);
      }
      if (sources.size() != u->source_count) continue;
      renamed[u] = Make(u, sources);
      original[renamed[u]] = u;
    }
    const RangeSets sets(first.store);
    const Ranges order = Toposort(second.store->src(1));
    absl::flat_hash_map<const UOp*, const UOp*> normal;
    for (const UOp* u : order) {
      sources.clear();
      for (const UOp* s : u->src()) sources.push_back(normal.at(s));
      normal[u] = Make(u, sources);
    }
    for (size_t i = order.size(); i-- > 0;) {  // The largest value first.
      auto found = original.find(normal.at(order[i]));
      if (found == original.end() || IsIndex(order[i]->dtype)) continue;
      if (Keep(sets, *renaming, first, second, found->second, order[i])) return true;
    }
    return false;
  }

  // `u` of other sources. The terms of an offset are put in order: renaming may have changed it.
  const UOp* Make(const UOp* u, Ranges& sources) {
    if (u->op == Op::kIndex) sources[1] = FromLinear(g_, ToLinear(sources[1]));
    return WithSources(g_, u, sources);
  }

  // Params may be written by any iteration of the loops around.
  bool IsWritten(const UOp* buffer, const absl::flat_hash_set<const UOp*>& written) const {
    return buffer->op == Op::kParam ? writers_.contains(buffer) : written.contains(buffer);
  }

  // Keeps `value`, which is `same` at the second place, if that pays.
  bool Keep(const RangeSets& sets, const Renaming& renaming, const StorePlace& first,
            const StorePlace& second, const UOp* value, const UOp* same) {
    uint64_t inside = 0;
    for (const UOp* r : renaming.from) inside |= sets.Bit(r);
    if ((sets.Of(value) & inside) != inside) return false;
    double cost = 0;
    for (const UOp* u : Toposort(value)) {
      if ((sets.Of(u) & inside) != 0) cost += CostOf(u);
    }
    if (cost < kLeastCost) return false;
    const UOp* index = first.store->src(0);
    if (value == first.store->src(1) && kept_.contains(index->src(0))) {
      ReadInstead(second, same, Substitute(g_, index, renaming.from, renaming.to));
      return true;
    }
    Ranges from;
    Ranges to;
    for (const UOp* r : renaming.common) {
      if (!sets.Depends(value, r)) continue;
      from.push_back(r);
      to.push_back(r);
    }
    // Loops, then registers, the lanes last.
    from.insert(from.begin(), renaming.from.begin(), renaming.from.end());
    to.insert(to.begin(), renaming.to.begin(), renaming.to.end());
    MoveLanesLast(from);
    MoveLanesLast(to);
    if (const UOp* output = OutputFor(second, value->dtype, to)) {
      ++writers_[output->src(0)];
      loaded_.insert(output->src(0));
      ReadInstead(second, same, output);
      Fill(first, Store(g_, Substitute(g_, output, to, from), value));
      return true;
    }
    int64_t elements = 1;
    for (const UOp* r : from) elements *= r->range_size();
    const int64_t bytes = elements * ByteSize(value->dtype.scalar);
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    const UOp* buffer = Scratch(g_, value->dtype, next_slot_++, elements);
    kept_.insert(buffer);
    ReadInstead(second, same, Index(g_, buffer, RowMajorOffset(g_, to)));
    Fill(first, Store(g_, Index(g_, buffer, RowMajorOffset(g_, from)), value));
    return true;
  }

  // The element that the second place writes, if the value can wait there: each iteration has one
  // of its own, and nobody else touches the output. That is better than scratch memory: the lines
  // come to the cache while the values are computed. What is written past the caches is not read
  // before.
  const UOp* OutputFor(const StorePlace& second, DType dtype, const Ranges& ranges) const {
    const UOp* index = second.store->src(0);
    const UOp* buffer = index->src(0);
    if (buffer->op != Op::kParam || buffer->dtype != dtype || index->source_count != 2) {
      return nullptr;
    }
    if (loaded_.contains(buffer) || writers_.at(buffer) != 1) return nullptr;
    if (buffer->buffer_size() * ByteSize(dtype.scalar) >= stream_bytes_) return nullptr;
    LinearForm form = ToLinear(index->src(1));
    for (const UOp* r : ranges) {
      if (form.CoefficientOf(r) == 0) return nullptr;
    }
    std::sort(form.terms.begin(), form.terms.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    int64_t reach = 1;
    for (const auto& [term, coefficient] : form.terms) {
      if (term->op != Op::kRange || coefficient < reach) return nullptr;
      reach = coefficient * term->range_size();
    }
    return index;
  }

  void Fill(const StorePlace& place, const UOp* store) {
    PlacedStatement fill;
    fill.store = store;
    std::vector<PlacedStatement>& body = place.parent->inner;
    body.insert(body.begin() + static_cast<int64_t>(place.at), std::move(fill));
  }

  void ReadInstead(const StorePlace& place, const UOp* value, const UOp* index) {
    const UOp* load = Load(g_, index);
    place.parent->inner[place.at].store = Substitute(g_, place.store, {{value}}, {{load}});
  }

  UOpGraph& g_;
  int64_t bytes_left_;
  int64_t stream_bytes_;
  PlacedStatement root_;
  int64_t next_slot_ = 0;
  absl::flat_hash_map<const UOp*, int> writers_;  // stores of the phase to each buffer
  absl::flat_hash_set<const UOp*> loaded_;
  absl::flat_hash_set<const UOp*> kept_;  // scratch that was made here
};

// Whether there can be two expensive values of one kind at all: most kernels have none.
bool MayShare(const UOp* phase) {
  int expensive = 0;
  for (const UOp* u : Toposort(phase)) {
    if (u->op == Op::kStore && IsExpensive(u)) ++expensive;
  }
  return expensive >= 2;
}

}  // namespace

const UOp* ShareValues(UOpGraph& graph, const UOp* sink, const Target& target,
                       int64_t stream_bytes) {
  Ranges phases;
  for (const UOp* phase : sink->src()) {
    phases.push_back(MayShare(phase)
                         ? Sharer(graph, phase, target.l2_bytes / 4, stream_bytes).Run(phase)
                         : phase);
  }
  return WithSources(graph, sink, phases);
}

}  // namespace quern
