#include "codegen/expand.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "codegen/map_statements.h"
#include "codegen/matrix_instructions.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// Expands one store. Every node has one copy for each combination of the unrolled axes that it
// depends on; copies are numbered with the first axis varying slowest.
class StatementExpander {
 public:
  StatementExpander(UOpGraph& graph, const UOp* store) : g_(graph), store_(store), sets_(store) {
    for (const UOp* r : sets_.ranges()) {
      const uint64_t bit = sets_.Bit(r);
      if (r->range_type() == AxisType::kLane) {
        QUERN_CHECK_MSG(lane_ == nullptr, "one lane axis a statement");
        lane_ = r;
        lane_bit_ = bit;
      } else if (IsRegisterAxis(r->range_type())) {
        unrolled_bits_ |= bit;
        if (r->range_type() == AxisType::kWarp) matrix_bit_ |= bit;
      }
    }
  }

  // Appends the copies of the store.
  void Run(std::vector<const UOp*>& statements) {
    if (unrolled_bits_ == 0 && lane_ == nullptr) {
      statements.push_back(store_);
      return;
    }
    const std::vector<const UOp*> order = Toposort(store_);
    FindChains(order);
    copies_.resize(store_->id + 1);
    for (const UOp* u : order) ExpandNode(u);
    for (const UOp* copy : copies_[store_->id]) statements.push_back(copy);
  }

 private:
  uint64_t Unrolled(const UOp* u) const { return sets_.Of(u) & unrolled_bits_; }
  bool IsVector(const UOp* u) const { return (sets_.Of(u) & lane_bit_) != 0; }
  int Width() const { return static_cast<int>(lane_->range_size()); }

  // A REDUCE used only as the second source of its own operation continues that chain:
  // op(x, reduce(v)) is op(op(x, v0), v1)…, one instruction a term instead of a tree and one more.
  void FindChains(const std::vector<const UOp*>& order) {
    absl::flat_hash_map<const UOp*, int> uses;
    for (const UOp* u : order) {
      for (const UOp* s : u->src()) ++uses[s];
    }
    for (const UOp* u : order) {
      if (u->source_count != 2 || u->src(1)->op != Op::kReduce) continue;
      const UOp* reduce = u->src(1);
      bool over_lane = false;
      for (const UOp* r : reduce->src().subspan(1)) over_lane |= r == lane_;
      if (reduce->reduce_op() == u->op && uses[reduce] == 1 && !over_lane) chained_.insert(reduce);
    }
  }

  // Calls `visit(values)` for each combination of the axes in `set`; values are by axis number.
  template <typename Visit>
  void ForEach(uint64_t set, std::vector<int64_t>& values, const Visit& visit) {
    const std::vector<const UOp*> axes = sets_.Members(set);
    int64_t count = 1;
    for (const UOp* r : axes) count *= r->range_size();
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n;
      for (size_t i = axes.size(); i-- > 0;) {
        values[BitNumber(axes[i])] = rest % axes[i]->range_size();
        rest /= axes[i]->range_size();
      }
      visit();
    }
  }

  size_t BitNumber(const UOp* range) const {
    return static_cast<size_t>(__builtin_ctzll(sets_.Bit(range)));
  }

  // The copy of `u` for the current values.
  const UOp* Copy(const UOp* u, const std::vector<int64_t>& values) const {
    uint64_t set = Unrolled(u);
    if (set == 0 && copies_[u->id].empty()) return u;
    int64_t number = 0;
    while (set != 0) {
      const int bit = __builtin_ctzll(set);
      set &= set - 1;
      number = number * sets_.ranges()[bit]->range_size() + values[bit];
    }
    return copies_[u->id][number];
  }

  const UOp* Vector(const UOp* u) {
    if (u->dtype.lanes != 1) return u;
    return g_.Make(Op::kBroadcast, u->dtype.WithLanes(Width()), {u});
  }

  void ExpandNode(const UOp* u) {
    const uint64_t set = Unrolled(u);
    if (set == 0 && !IsVector(u) && u->op != Op::kReduce && !HasRegisters(u)) return;
    if (chained_.contains(u)) return;
    std::vector<const UOp*>& copies = copies_[u->id];
    std::vector<int64_t> values(sets_.ranges().size(), 0);
    if (const UOp* along = TransposedAxis(u)) {
      ForEach(set, values, [&] { copies.push_back(ExpandTransposed(u, along, values)); });
      return;
    }
    const LinearForm form = u->op == Op::kIndex ? ToLinear(u->src(1)) : LinearForm();
    const UOp* common = u->op == Op::kIndex ? CommonOffset(form) : nullptr;
    ForEach(set, values, [&] {
      switch (u->op) {
        case Op::kRange:
          copies.push_back(u == lane_ ? g_.Make(Op::kLanes, kIndexType.WithLanes(Width()), {})
                                      : IndexConst(g_, values[BitNumber(u)]));
          break;
        case Op::kIndex:
          copies.push_back(ExpandIndex(u, form, common, values));
          break;
        case Op::kReduce:
          copies.push_back(ExpandReduce(u, nullptr, values));
          break;
        default:
          copies.push_back(ExpandPlain(u, values));
      }
    });
  }

  // For a load whose lanes lie apart in memory: an unrolled axis along which it is contiguous. The
  // copies along that axis together are a block that is read by rows and transposed in registers.
  const UOp* TransposedAxis(const UOp* u) const {
    if (u->op != Op::kLoad || !IsVector(u) || !IsPowerOfTwo(Width())) return nullptr;
    const UOp* index = u->src(0);
    if (index->source_count == 3 && (IsVector(index->src(2)) || Unrolled(index->src(2)) != 0)) {
      return nullptr;  // Rows that are partly outside would need masks of their own.
    }
    const UOp* along = nullptr;
    bool strided = false;
    const LinearForm form = ToLinear(index->src(1));
    for (const auto& [term, coefficient] : form.terms) {
      if (term == lane_) {
        strided = coefficient != 1;
      } else if (IsVector(term)) {
        return nullptr;
      } else if (term->op == Op::kRange && Unrolled(term) != 0 && coefficient == 1) {
        along = term;
      }
    }
    for (const auto& [term, coefficient] : form.terms) {
      // As in i + (i·2)//3: its neighbours do not lie side by side.
      if (along != nullptr && term != along && sets_.Depends(term, along)) return nullptr;
    }
    const bool fits = along != nullptr && IsPowerOfTwo(along->range_size()) &&
                      along->range_size() >= 4 && along->range_size() <= 64 && Width() >= 4;
    return strided && fits ? along : nullptr;
  }

  static bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

  const UOp* ExpandTransposed(const UOp* u, const UOp* along, std::vector<int64_t>& values) {
    const UOp* index = u->src(0);
    const LinearForm form = ToLinear(index->src(1));
    const UOp* common = CommonOffset(form);
    const int rows = Width();
    const int columns = static_cast<int>(along->range_size());
    const int64_t column = values[BitNumber(along)];
    const UOp* lanes = g_.Make(Op::kLanes, kIndexType.WithLanes(columns), {});
    std::vector<const UOp*> row_loads;
    values[BitNumber(along)] = 0;
    for (int row = 0; row < rows; ++row) {
      LinearForm start = form;
      std::erase_if(start.terms, [&](const auto& term) { return term.first == lane_; });
      start.constant += form.CoefficientOf(lane_) * row;
      const UOp* offset = ExpandOffset(start, common, values);
      offset = Add(g_, g_.Make(Op::kBroadcast, lanes->dtype, {offset}), lanes);
      const UOp* gate = nullptr;
      if (index->source_count == 3) {
        gate = g_.Make(Op::kBroadcast, kBoolType.WithLanes(columns), {index->src(2)});
      }
      row_loads.push_back(Load(g_, Index(g_, index->src(0), offset, gate)));
    }
    values[BitNumber(along)] = column;
    const UOp* block = g_.Make(Op::kInterleave, u->dtype.WithLanes(rows * columns), row_loads);
    return g_.Make(Op::kExtract, u->dtype.WithLanes(rows), {block}, {column * rows, 0});
  }

  // Whether a source of `u` was expanded although `u` depends on no register axis itself.
  bool HasRegisters(const UOp* u) const {
    for (const UOp* s : u->src()) {
      if (!copies_[s->id].empty() || chained_.contains(s)) return true;
    }
    return false;
  }

  const UOp* ExpandPlain(const UOp* u, std::vector<int64_t>& values) {
    if (u->source_count == 2 && chained_.contains(u->src(1))) {
      const UOp* start = Copy(u->src(0), values);
      if (IsVector(u)) start = Vector(start);
      return ExpandReduce(u->src(1), start, values);
    }
    absl::InlinedVector<const UOp*, 4> sources;
    bool vector = false;
    for (const UOp* s : u->src()) {
      sources.push_back(Copy(s, values));
      vector |= sources.back()->dtype.lanes != 1;
    }
    if (vector && u->op != Op::kLoad) {
      for (const UOp*& s : sources) {
        if (s->op == Op::kIndex && s->dtype.lanes == 1) {
          QUERN_CHECK_MSG(false, "a store of all lanes to one place");
        }
        s = Vector(s);
      }
    }
    DType dtype = u->dtype;
    if (vector && u->op != Op::kStore) dtype = dtype.WithLanes(Width());
    return g_.Make(u->op, dtype, sources, u->arg);
  }

  // The part of an offset that depends on no register axis: one node for all copies.
  const UOp* CommonOffset(const LinearForm& form) {
    LinearForm common;
    for (const auto& [term, coefficient] : form.terms) {
      if (Unrolled(term) == 0 && !IsVector(term)) common.terms.emplace_back(term, coefficient);
    }
    return common.terms.empty() ? nullptr : FromLinear(g_, common);
  }

  // The offset without the lanes' own term, which is left to the caller.
  const UOp* ExpandOffset(const LinearForm& form, const UOp* common, std::vector<int64_t>& values) {
    int64_t constant = form.constant;
    const UOp* scalar = common;
    const UOp* vector = nullptr;
    auto add = [&](const UOp* sum, const UOp* x) { return sum == nullptr ? x : Add(g_, sum, x); };
    for (const auto& [term, coefficient] : form.terms) {
      if ((Unrolled(term) == 0 && !IsVector(term)) || term == lane_) continue;
      if (term->op == Op::kRange) {
        constant += coefficient * values[BitNumber(term)];
        continue;
      }
      const UOp* copy = Copy(term, values);
      const bool scalar_copy = copy->dtype.lanes == 1;
      if (coefficient != 1) {
        const UOp* factor = IndexConst(g_, coefficient);
        copy = Mul(g_, copy, scalar_copy ? factor : Vector(factor));
      }
      const UOp*& sum = scalar_copy ? scalar : vector;
      sum = add(sum, copy);
    }
    if (constant != 0 || scalar == nullptr) scalar = add(scalar, IndexConst(g_, constant));
    return vector == nullptr ? scalar : Add(g_, Vector(scalar), vector);
  }

  const UOp* ExpandIndex(const UOp* u, const LinearForm& form, const UOp* common,
                         std::vector<int64_t>& values) {
    const UOp* offset = ExpandOffset(form, common, values);
    if (const int64_t stride = lane_ == nullptr ? 0 : form.CoefficientOf(lane_); stride != 0) {
      const UOp* lanes = g_.Make(Op::kLanes, kIndexType.WithLanes(Width()), {});
      if (stride != 1) lanes = Mul(g_, lanes, Vector(IndexConst(g_, stride)));
      offset = Add(g_, Vector(offset), lanes);
    }
    const UOp* gate = u->source_count == 3 ? Copy(u->src(2), values) : nullptr;
    // A gate by lanes on one place is a vector of the same place.
    if (gate != nullptr && gate->dtype.lanes != 1) offset = Vector(offset);
    if (gate != nullptr && offset->dtype.lanes != 1) gate = Vector(gate);
    return Index(g_, u->src(0), offset, gate);
  }

  // Combines the copies of a REDUCE's value, after `start` if that is given.
  const UOp* ExpandReduce(const UOp* u, const UOp* start, std::vector<int64_t>& values) {
    const Op op = u->reduce_op();
    uint64_t closed = 0;
    bool over_lane = false;
    for (const UOp* r : u->src().subspan(1)) {
      over_lane |= r == lane_;
      closed |= sets_.Bit(r);
    }
    std::vector<const UOp*> terms;
    std::vector<int64_t> inner = values;
    if (start != nullptr && (closed & matrix_bit_) != 0) {
      if (const UOp* sum = ExpandMatrix(u, start, closed, inner)) return sum;
    }
    ForEach(closed & unrolled_bits_, inner, [&] { terms.push_back(Copy(u->src(0), inner)); });
    if (start != nullptr) {
      for (const UOp* t : terms) {
        if (start->dtype.lanes != 1) t = Vector(t);
        if (t->dtype.lanes != 1) start = Vector(start);
        start = Binary(g_, op, start, t);
      }
      return start;
    }
    while (terms.size() > 1) {  // A balanced tree: shorter chains of latency.
      std::vector<const UOp*> next;
      for (size_t i = 0; i + 1 < terms.size(); i += 2) {
        next.push_back(Binary(g_, op, terms[i], terms[i + 1]));
      }
      if (terms.size() % 2 != 0) next.push_back(terms.back());
      terms.swap(next);
    }
    const UOp* result = terms[0];
    if (over_lane) {
      result = g_.Make(Op::kHorizontal, u->dtype, {Vector(result)}, {static_cast<int64_t>(op), 1});
    }
    return result;
  }

  // A sum of products by matrix instructions; nullptr if the accumulator has not enough lanes.
  const UOp* ExpandMatrix(const UOp* u, const UOp* start, uint64_t closed,
                          std::vector<int64_t>& values) {
    absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(u->src(0));
    if (!factors.ok()) return nullptr;
    const MatrixInstruction& instruction = MatrixInstructions()[factors->instruction];
    const int64_t registers = lane_ == nullptr ? 0 : Width() / instruction.lanes;
    if (registers == 0 || Width() % instruction.lanes != 0) return nullptr;
    if ((registers & (registers - 1)) != 0) return nullptr;  // They are joined pairwise.
    const uint64_t others = closed & unrolled_bits_ & ~matrix_bit_;
    const UOp* sum = Vector(start);
    ForEach(others, values, [&] {
      const UOp* a = Group(factors->a, instruction.group, values);
      const UOp* b = Group(factors->b, instruction.group, values);
      sum = g_.Make(Op::kMatrix, sum->dtype, {sum, a, b}, {factors->instruction, 0});
    });
    return sum;
  }

  // The copies of one factor along the axis of the instruction, side by side in each lane.
  const UOp* Group(const UOp* factor, int size, std::vector<int64_t>& values) {
    std::vector<const UOp*> parts;
    bool vector = false;
    ForEach(matrix_bit_, values, [&] {
      parts.push_back(Copy(factor, values));
      vector |= parts.back()->dtype.lanes != 1;
    });
    QUERN_CHECK(static_cast<int>(parts.size()) == size);
    if (vector) {
      for (const UOp*& p : parts) p = Vector(p);
    }
    const int lanes = size * (vector ? Width() : 1);
    return g_.Make(Op::kInterleave, factor->dtype.WithLanes(lanes), parts);
  }

  UOpGraph& g_;
  const UOp* store_;
  RangeSets sets_;
  const UOp* lane_ = nullptr;
  uint64_t lane_bit_ = 0;
  uint64_t unrolled_bits_ = 0;
  uint64_t matrix_bit_ = 0;  // the axis that a matrix instruction sums
  absl::flat_hash_set<const UOp*> chained_;
  std::vector<std::vector<const UOp*>> copies_;  // by node id
};

}  // namespace

const UOp* Expand(UOpGraph& graph, const UOp* sink) {
  std::vector<const UOp*> copies;
  return MapStatements(graph, sink, [&](const UOp* u) -> const UOp* {
    if (u->op != Op::kStore) return nullptr;
    copies.clear();
    StatementExpander(graph, u).Run(copies);
    return copies.size() == 1 ? copies[0] : graph.Make(Op::kBlock, kVoidType, copies);
  });
}

}  // namespace quern
