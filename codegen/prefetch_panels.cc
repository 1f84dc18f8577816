#include "codegen/prefetch_panels.h"

#include <algorithm>
#include <vector>

#include "codegen/access.h"
#include "codegen/lowered_kernel.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

using Ranges = std::vector<const UOp*>;

constexpr int64_t kLine = 64;  // bytes
// Of the beginning of a row, before hardware follows it.
constexpr int64_t kAhead = 4, kLeastLines = 16;

// The loops around a load that matter here.
struct Walk {
  const UOp* panel = nullptr;  // each iteration reads another panel
  Ranges again;                // loops inside it, outermost first: the steps that read one panel
  Ranges rows;                 // those of them that read all of it again
  int64_t steps = 1;           // all together
  int64_t passes = 1;          // how often they read it
};

// `loops` are those around a load at `form`, outermost first.
Walk WalkOf(const Ranges& loops, const LinearForm& form) {
  Walk walk;
  for (const UOp* r : loops) {
    const bool follows = form.CoefficientOf(r) > 0;
    if (!IsReduceAxis(r->range_type()) && follows) {
      walk = {};
      walk.panel = r;
      continue;
    }
    walk.again.push_back(r);
    walk.steps *= r->range_size();
    if (follows) continue;
    walk.rows.push_back(r);
    walk.passes *= r->range_size();
  }
  return walk;
}

// The vector loads, or those of single elements, of one buffer in an innermost loop.
struct Loads {
  const UOp* buffer = nullptr;
  LinearForm form;  // of the first one
  std::vector<const UOp*> loads;
  std::vector<int64_t> constants;  // by which they differ
  Walk walk;

  int64_t element_bytes() const { return ByteSize(buffer->dtype.scalar); }
  int64_t panel_elements() const { return form.CoefficientOf(walk.panel); }
};

class Prefetcher {
 public:
  Prefetcher(UOpGraph& graph, const Target& target) : g_(graph), target_(target) {}

  // Recursion is as deep as the loop nest.
  const UOp* Statement(const UOp* u) {
    const bool is_loop = u->op == Op::kLoop;
    if (is_loop) loops_.push_back(u->src(0));
    Ranges sources;
    const int64_t loops_before = loops_seen_;
    for (const UOp* s : u->src()) {
      const bool inner = GetOpInfo(s->op).statement && s->op != Op::kStore;
      sources.push_back(inner ? Statement(s) : s);
    }
    const UOp* result = WithSources(g_, u, sources);
    if (!is_loop) return result;
    if (loops_seen_ == loops_before) result = FetchIn(result);  // an innermost one
    ++loops_seen_;
    loops_.pop_back();
    return result;
  }

 private:
  const UOp* FetchIn(const UOp* loop) {
    std::vector<Loads> all;
    for (const UOp* u : Toposort(loop)) {
      if (u->op != Op::kLoad || u->source_count != 1) continue;
      const Access access = ReadAccess(u->src(0));
      const bool scalar = access.kind == Access::Kind::kScalar;
      if (!scalar && (access.kind != Access::Kind::kStrided || access.stride != 1)) continue;
      if (access.base == nullptr || access.buffer->op != Op::kParam) continue;
      const int64_t bytes = access.buffer->buffer_size() * ByteSize(u->dtype.scalar);
      if (bytes <= target_.l2_bytes) continue;
      auto found = std::find_if(all.begin(), all.end(), [&](const Loads& known) {
        const bool same_kind = (known.loads[0]->dtype.lanes == 1) == scalar;
        return known.buffer == access.buffer && same_kind;
      });
      const LinearForm form = ToLinear(access.base);
      if (found == all.end()) {
        all.push_back({access.buffer, form, {}, {}, WalkOf(loops_, form)});
        found = all.end() - 1;
      }
      found->loads.push_back(u);
      found->constants.push_back(form.constant);
    }
    Ranges from;
    Ranges to;
    for (const Loads& loads : all) {
      if (loads.walk.panel == nullptr) continue;
      if (loads.loads[0]->dtype.lanes == 1) {
        FetchTile(loads, from, to);
        continue;
      }
      if (loads.walk.passes < 2) continue;
      if (loads.buffer->slot() >= kFirstPackedSlot) {
        FetchPacked(loads, from, to);
      } else {
        FetchRows(loads, from, to);
      }
    }
    return from.empty() ? loop : Substitute(g_, loop, from, to);
  }

  void Fetch(const UOp* load, const LinearForm& place, Ranges& from, Ranges& to) {
    from.push_back(load);
    to.push_back(g_.Make(Op::kLoad, load->dtype, {load->src(0), FromLinear(g_, place)}, load->arg));
  }

  // A packed panel is one piece of memory: each step takes an equal part of it.
  void FetchPacked(const Loads& loads, Ranges& from, Ranges& to) {
    const Walk& walk = loads.walk;
    const int64_t panel = loads.panel_elements();
    const int64_t bytes = panel * loads.element_bytes();
    if (2 * bytes > target_.l2_bytes || bytes < target_.l1_bytes) return;
    LinearForm place;
    for (const auto& [term, coefficient] : loads.form.terms) {
      const bool inside = std::count(walk.again.begin(), walk.again.end(), term) != 0;
      if (!inside) place.terms.emplace_back(term, coefficient);
    }
    place.constant = panel;
    int64_t elements = (panel + walk.steps - 1) / walk.steps;
    for (size_t i = walk.again.size(); i-- > 0;) {
      place.terms.emplace_back(walk.again[i], elements);
      elements *= walk.again[i]->range_size();
    }
    const size_t lines = static_cast<size_t>((bytes / walk.steps + kLine - 1) / kLine);
    for (size_t i = 0; i < std::min(lines, loads.loads.size()); ++i) {
      Fetch(loads.loads[i], place, from, to);
      place.constant += kLine / loads.element_bytes();
    }
  }

  // Where an operand lies as it is, a panel is a short piece of each of many rows, and each step
  // reads some of those. It fetches what lies beside them, in each pass another line of it.
  void FetchRows(const Loads& loads, Ranges& from, Ranges& to) {
    const Walk& walk = loads.walk;
    const int64_t bytes = loads.element_bytes();
    const int64_t width = loads.loads[0]->dtype.lanes;
    const auto rows = static_cast<int64_t>(loads.loads.size());
    const int64_t distance = rows > 1 ? loads.constants[1] - loads.constants[0] : 0;
    for (int64_t i = 0; i < rows; ++i) {
      if (loads.constants[i] != loads.constants[0] + i * distance) return;
      if (loads.loads[i]->dtype.lanes != width) return;
    }
    const int64_t lines = width * bytes / kLine;  // of each row
    const bool beside = loads.panel_elements() == width && width * bytes % kLine == 0;
    const int64_t panel = walk.steps / walk.passes * rows * width * bytes;
    if (!beside || 2 * panel > target_.l2_bytes || panel < target_.l1_bytes) return;
    const int64_t pieces = lines * rows;
    const int64_t each = (pieces + walk.passes - 1) / walk.passes;
    const UOp* pass = nullptr;
    int64_t passes = 1;
    for (size_t i = walk.rows.size(); i-- > 0; passes *= walk.rows[i]->range_size()) {
      const UOp* term = Mul(g_, walk.rows[i], IndexConst(g_, passes * each));
      pass = pass == nullptr ? term : Add(g_, pass, term);
    }
    for (int64_t i = 0; i < std::min(each, rows); ++i) {
      const UOp* piece = Add(g_, pass, IndexConst(g_, i));
      LinearForm place = loads.form;
      place.constant += width;
      const UOp* per_row = IndexConst(g_, lines);
      place.terms.emplace_back(Binary(g_, Op::kFloorDiv, piece, per_row), distance);
      place.terms.emplace_back(Binary(g_, Op::kFloorMod, piece, per_row), kLine / bytes);
      Fetch(loads.loads[static_cast<size_t>(i)], place, from, to);
    }
  }

  // The rows of a register tile, each read element by element along the reduction. The next tile
  // has the rows behind them; hardware follows a row once it has met its beginning.
  void FetchTile(const Loads& loads, Ranges& from, Ranges& to) {
    const Walk& walk = loads.walk;
    const int64_t bytes = loads.element_bytes();
    std::vector<int64_t> constants = loads.constants;
    std::sort(constants.begin(), constants.end());
    // Steps of the reduction that one iteration does lie side by side.
    int64_t run = 1;
    const auto count = static_cast<int64_t>(constants.size());
    while (run < count && constants[run] == constants[0] + run) ++run;
    const int64_t rows = count / run;
    const int64_t distance = rows > 1 ? constants[run] - constants[0] : 0;
    for (int64_t i = 0; i < count; ++i) {
      if (constants[i] != constants[0] + i / run * distance + i % run) return;
    }
    int64_t length = run;
    LinearForm place = loads.form;
    place.constant = constants[0] + loads.panel_elements();
    for (size_t i = walk.again.size(); i-- > 0;) {
      const UOp* loop = walk.again[i];
      const int64_t step = loads.form.CoefficientOf(loop);
      if (step == 0) continue;
      if (step != length) return;
      length *= loop->range_size();
      std::erase_if(place.terms, [&](const auto& term) { return term.first == loop; });
    }
    const int64_t lines = length * bytes / kLine;  // of each row
    if (lines < kLeastLines || rows < 2 || walk.again.empty()) return;
    const UOp* inner = walk.again.back();
    const UOp* piece = inner;
    if (inner->range_size() > rows * kAhead) {
      piece = Binary(g_, Op::kFloorMod, inner, IndexConst(g_, rows * kAhead));
    }
    const UOp* per_row = IndexConst(g_, kAhead);
    place.terms.emplace_back(Binary(g_, Op::kFloorDiv, piece, per_row), distance);
    place.terms.emplace_back(Binary(g_, Op::kFloorMod, piece, per_row), kLine / bytes);
    Fetch(loads.loads[0], place, from, to);
  }

  UOpGraph& g_;
  const Target& target_;
  Ranges loops_;            // those that are open
  int64_t loops_seen_ = 0;  // and closed again
};

}  // namespace

const UOp* PrefetchPanels(UOpGraph& graph, const UOp* sink, const Target& target) {
  return Prefetcher(graph, target).Statement(sink);
}

}  // namespace quern
