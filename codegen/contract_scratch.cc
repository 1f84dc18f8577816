#include "codegen/contract_scratch.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "codegen/statement_places.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/prove_access.h"
#include "rewrite/range_sets.h"
#include "rewrite/temporaries.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

constexpr int64_t kLineBytes = 64;
// Rows that lie a multiple of this apart meet in few sets of a cache.
constexpr int64_t kSetsBytes = 1024;

// Where one buffer is used.
struct Uses {
  const UOp* buffer = nullptr;
  Ranges accesses;                             // INDEX nodes
  std::vector<const PlacedStatement*> around;  // the loops around all of them, outermost first
};

// The uses of all scratch buffers below `s`, which stands inside the loops `around`.
void FindUses(const PlacedStatement& s, std::vector<const PlacedStatement*>& around,
              std::vector<Uses>& found) {
  if (s.store == nullptr) {
    if (s.range != nullptr) around.push_back(&s);
    for (const PlacedStatement& inner : s.inner) FindUses(inner, around, found);
    if (s.range != nullptr) around.pop_back();
    return;
  }
  for (const UOp* u : Toposort(s.store)) {
    if (u->op != Op::kIndex || u->src(0)->op != Op::kScratch) continue;
    auto uses = std::find_if(found.begin(), found.end(),
                             [&](const Uses& other) { return other.buffer == u->src(0); });
    if (uses == found.end()) {
      found.push_back({u->src(0), {u}, around});
      continue;
    }
    const bool known =
        std::find(uses->accesses.begin(), uses->accesses.end(), u) != uses->accesses.end();
    if (!known) uses->accesses.push_back(u);
    size_t n = 0;
    while (n < around.size() && n < uses->around.size() && around[n] == uses->around[n]) ++n;
    uses->around.resize(n);
  }
}

// The offset without the ranges in `without`.
LinearForm Without(const UOp* index, const Ranges& without) {
  LinearForm form = ToLinear(index->src(1));
  std::erase_if(form.terms, [&](const auto& term) {
    return std::find(without.begin(), without.end(), term.first) != without.end();
  });
  return form;
}

// Elements from one row to the next, if a row has so many.
int64_t Pitch(int64_t elements, int64_t rows, DType dtype) {
  const int64_t line = kLineBytes / ByteSize(dtype.scalar);
  if (rows == 1 || elements < line) return elements;
  const int64_t pitch = (elements + line - 1) / line * line;
  return pitch * ByteSize(dtype.scalar) % kSetsBytes == 0 ? pitch + line : pitch;
}

// New places for the accesses; nullopt if nothing gets shorter.
std::optional<Ranges> Contract(UOpGraph& g, const Uses& uses) {
  const Ranges alike = RangesUsedAlike(uses.accesses);
  Ranges rows = alike;  // those that one iteration of the loops around goes through
  for (const PlacedStatement* loop : uses.around) {
    // Inside a loop that comes back to the same elements they may have to last.
    if (std::erase(rows, loop->range) == 0) break;
  }
  if (rows.size() == alike.size()) return std::nullopt;
  int64_t elements = 1;
  for (const UOp* index : uses.accesses) {
    const UOp* gate = index->source_count == 3 ? index->src(2) : nullptr;
    const std::optional<Bounds> bounds = BoundsUnderGate(Without(index, alike), gate);
    if (bounds.has_value()) elements = std::max(elements, bounds->max + 1);
  }
  int64_t count = 1;
  for (const UOp* r : rows) count *= r->range_size();
  // In the order of the old strides.
  const LinearForm old = ToLinear(uses.accesses[0]->src(1));
  std::sort(rows.begin(), rows.end(), [&](const UOp* a, const UOp* b) {
    return old.CoefficientOf(a) < old.CoefficientOf(b);
  });
  const int64_t pitch = Pitch(elements, count, uses.buffer->dtype);
  const UOp* buffer = Scratch(g, uses.buffer->dtype, uses.buffer->slot(), pitch * count);
  Ranges places;
  for (const UOp* index : uses.accesses) {
    LinearForm form = Without(index, alike);
    int64_t stride = pitch;
    for (const UOp* r : rows) {
      LinearForm row;
      row.terms = {{r, 1}};
      if (!AddScaled(form, row, stride)) return std::nullopt;
      stride *= r->range_size();
    }
    const UOp* gate = index->source_count == 3 ? index->src(2) : nullptr;
    places.push_back(Index(g, buffer, FromLinear(g, form), gate));
    if (!ProveAccess(places.back())) return std::nullopt;
  }
  return places;
}

}  // namespace

const UOp* ContractScratch(UOpGraph& graph, const UOp* sink) {
  Ranges phases;
  for (const UOp* phase : sink->src()) {
    for (bool changed = true; changed;) {
      changed = false;
      const PlacedStatement root = ReadStatements(phase);
      std::vector<Uses> found;
      std::vector<const PlacedStatement*> around;
      FindUses(root, around, found);
      // One by one: an access may stand in the offset of another.
      for (const Uses& uses : found) {
        const std::optional<Ranges> places = Contract(graph, uses);
        if (!places.has_value()) continue;
        phase = Substitute(graph, phase, uses.accesses, *places);
        changed = true;
        break;
      }
    }
    phases.push_back(phase);
  }
  return WithSources(graph, sink, phases);
}

}  // namespace quern
