#include "codegen/expand.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "codegen/axis_values.h"
#include "codegen/expand_scan.h"
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
    group_ = FindStoredGroups();
    const UOp* value = store_->src(1);
    if (group_ != nullptr && value->op == Op::kLoad && IsVector(value)) {
      bool shared = false;
      for (const UOp* u : order) {
        for (const UOp* s : u->src()) shared |= s == value && u != store_;
      }
      if (!shared && CanLoadGroups(value, group_)) grouped_load_ = value;
    }
    copies_.resize(store_->id + 1);
    const UOp* terms = AccumulatedTerms();
    for (const UOp* u : order) {
      if (terms == nullptr || (u != store_ && u != value)) ExpandNode(u);
    }
    if (terms != nullptr) return Accumulate(terms, statements);
    for (const UOp* copy : copies_[store_->id]) statements.push_back(copy);
  }

 private:
  uint64_t Unrolled(const UOp* u) const { return sets_.Of(u) & unrolled_bits_; }
  bool IsVector(const UOp* u) const { return (sets_.Of(u) & lane_bit_) != 0; }
  bool ClosesLanes(const UOp* reduce) const {
    return std::count(reduce->src().begin() + 1, reduce->src().end(), lane_) != 0;
  }
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
      if (reduce->reduce_op() == u->op && uses[reduce] == 1 && !ClosesLanes(reduce)) {
        chained_.insert(reduce);
      }
    }
  }

  // The REDUCE of a store that only adds it to an accumulator in registers, or nullptr.
  const UOp* AccumulatedTerms() const {
    const UOp* value = store_->src(1);
    const UOp* index = store_->src(0);
    if (value->source_count != 2 || !chained_.contains(value->src(1))) return nullptr;
    if (index->src(0)->op != Op::kRegister || value->src(0)->op != Op::kLoad) return nullptr;
    return value->src(0)->src(0) == index ? value->src(1) : nullptr;
  }

  // One term of all accumulators after the other: consecutive instructions wait for none of their
  // results, and only the operands of one term are in registers.
  void Accumulate(const UOp* terms, std::vector<const UOp*>& statements) {
    const uint64_t closed = Closed(terms);
    AxisValues values(sets_.ranges().size(), 0);
    const UOp* value = store_->src(1);
    ForEach(closed & ~matrix_bit_, values, [&] {
      ForEach(Unrolled(store_), values, [&] {
        const UOp* start = Copy(value->src(0), values);
        if (IsVector(value)) start = Vector(start);
        const UOp* sum = Continue(terms, start, closed & matrix_bit_, values);
        statements.push_back(Store(g_, Copy(store_->src(0), values), sum));
      });
    });
  }

  template <typename Visit>
  void ForEach(uint64_t set, AxisValues& values, const Visit& visit) {
    ForEachCombination(sets_, set, values, visit);
  }
  size_t BitNumber(const UOp* range) const { return AxisBitNumber(sets_, range); }

  // The copy of `u` for the current values.
  const UOp* Copy(const UOp* u, const AxisValues& values) const {
    const uint64_t set = Unrolled(u);
    if (set == 0 && copies_[u->id].empty()) return u;
    return copies_[u->id][CombinationNumber(sets_, set, values)];
  }

  const UOp* Vector(const UOp* u) {
    if (u->dtype.lanes != 1) return u;
    return g_.Make(Op::kBroadcast, u->dtype.WithLanes(Width()), {u});
  }

  void ExpandNode(const UOp* u) {
    const uint64_t set = Unrolled(u);
    if (set == 0 && !IsVector(u) && u->op != Op::kReduce && !HasRegisters(u)) return;
    if (chained_.contains(u) || u == grouped_load_) return;
    std::vector<const UOp*>& copies = copies_[u->id];
    AxisValues values(sets_.ranges().size(), 0);
    if (u == store_ && group_ != nullptr) {
      ForEach(set & ~sets_.Bit(group_), values,
              [&] { copies.push_back(StoreGroups(u, group_, values)); });
      return;
    }
    if (const UOp* along = TransposedAxis(u, nullptr)) {
      ForEach(set, values, [&] { copies.push_back(ExpandTransposed(u, along, nullptr, values)); });
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
          copies.push_back(ExpandReduce(u, values));
          break;
        case Op::kScan:
          copies.push_back(ExpandScanAt(u, values));
          break;
        default:
          copies.push_back(ExpandPlain(u, values));
      }
    });
  }

  // For a load whose lanes lie apart in memory: an unrolled axis along which it is contiguous. The
  // copies along that axis together are a block that is read by rows and transposed in registers.
  // With `group`, an unrolled axis too, it is blocks of whole groups along that axis that are
  // contiguous, and move as one.
  const UOp* TransposedAxis(const UOp* u, const UOp* group) const {
    if (u->op != Op::kLoad || !IsVector(u) || !IsPowerOfTwo(Width())) return nullptr;
    const UOp* index = u->src(0);
    const int64_t size = group == nullptr ? 1 : group->range_size();
    // A group is one integer.
    if (group != nullptr && (IsBool(u->dtype) || size * ByteSize(u->dtype.scalar) > 8)) {
      return nullptr;
    }
    const UOp* along = nullptr;
    bool strided = false;
    bool grouped = group == nullptr;
    const LinearForm form = ToLinear(index->src(1));
    for (const auto& [term, coefficient] : form.terms) {
      if (term == lane_) {
        strided = coefficient != size;
      } else if (term == group) {
        grouped = coefficient == 1;
      } else if (IsVector(term)) {
        return nullptr;
      } else if (term->op == Op::kRange && Unrolled(term) != 0 && coefficient == size) {
        along = term;
      }
    }
    if (along == nullptr || !strided || !grouped) return nullptr;
    for (const auto& [term, coefficient] : form.terms) {
      // As in i + (i·2)//3: its neighbours do not lie side by side.
      if (term != along && sets_.Depends(term, along)) return nullptr;
      if (group != nullptr && term != group && sets_.Depends(term, group)) return nullptr;
    }
    // Rows that are partly outside would need masks of their own.
    if (index->source_count == 3 && Unrolled(index->src(2)) != 0) return nullptr;
    const int64_t columns = along->range_size();
    const bool fits = IsPowerOfTwo(columns) && columns >= 4 && columns * size <= 64 && Width() >= 4;
    return fits ? along : nullptr;
  }

  static bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

  // One column of the block along the axes `along` and `group`.
  const UOp* ExpandTransposed(const UOp* u, const UOp* along, const UOp* group,
                              AxisValues& values) {
    const UOp* index = u->src(0);
    const LinearForm form = ToLinear(index->src(1));
    const UOp* common = CommonOffset(form);
    const int rows = Width();
    const int size = group == nullptr ? 1 : static_cast<int>(group->range_size());
    const int columns = static_cast<int>(along->range_size()) * size;
    const int64_t column = values[BitNumber(along)];
    std::vector<const UOp*> row_loads;
    values[BitNumber(along)] = 0;
    if (group != nullptr) values[BitNumber(group)] = 0;
    for (int row = 0; row < rows; ++row) {
      LinearForm start = form;
      std::erase_if(start.terms, [&](const auto& term) { return term.first == lane_; });
      start.constant += form.CoefficientOf(lane_) * row;
      const UOp* gate = index->source_count == 3 ? index->src(2) : nullptr;
      if (gate != nullptr) gate = Substitute(g_, gate, {{lane_}}, {{IndexConst(g_, row)}});
      row_loads.push_back(
          LoadNeighbours(index->src(0), ExpandOffset(start, common, values), gate, columns));
    }
    values[BitNumber(along)] = column;
    const UOp* block = g_.Make(Op::kInterleave, u->dtype.WithLanes(rows * columns), row_loads,
                               {size == 1 ? 0 : size, 0});
    return g_.Make(Op::kExtract, u->dtype.WithLanes(rows * size), {block},
                   {column * rows * size, 0});
  }

  const UOp* LoadNeighbours(const UOp* buffer, const UOp* offset, const UOp* gate, int count) {
    const UOp* lanes = g_.Make(Op::kLanes, kIndexType.WithLanes(count), {});
    offset = Add(g_, g_.Make(Op::kBroadcast, lanes->dtype, {offset}), lanes);
    if (gate != nullptr) gate = g_.Make(Op::kBroadcast, kBoolType.WithLanes(count), {gate});
    return Load(g_, Index(g_, buffer, offset, gate));
  }

  // --- Groups: the copies along one unrolled axis, side by side in each lane ---

  // Whether an address has the neighbours along `axis` side by side, lane after lane (or the same
  // for all lanes), and no gate between them.
  bool HoldsGroups(const UOp* index, const UOp* axis) const {
    const LinearForm form = ToLinear(index->src(1));
    if (form.CoefficientOf(axis) != 1) return false;
    for (const auto& [term, coefficient] : form.terms) {
      if (term != axis && sets_.Depends(term, axis)) return false;
      if (term != lane_ && IsVector(term)) return false;
      if (term == lane_ && coefficient != axis->range_size()) return false;
    }
    return index->source_count == 2 ||
           !(IsVector(index->src(2)) || sets_.Depends(index->src(2), axis));
  }

  // The unrolled axis whose copies of the store fill the gaps between its lanes, so that all of
  // them are one store.
  const UOp* FindStoredGroups() const {
    const UOp* index = store_->src(0);
    if (lane_ == nullptr || index->dtype.lanes != 1 || !IsVector(index->src(1))) return nullptr;
    for (const UOp* r : sets_.Members(sets_.Of(index->src(1)) & unrolled_bits_)) {
      const int64_t size = r->range_size();
      if (size < 2 || size > 8 || !IsPowerOfTwo(size)) continue;
      if (HoldsGroups(index, r)) return r;
    }
    return nullptr;
  }

  bool CanLoadGroups(const UOp* load, const UOp* axis) const {
    return HoldsGroups(load->src(0), axis) || TransposedAxis(load, axis) != nullptr;
  }

  const UOp* GroupOffset(const UOp* index, const UOp* axis, AxisValues& values) {
    const LinearForm form = ToLinear(index->src(1));
    values[BitNumber(axis)] = 0;
    return ExpandOffset(form, CommonOffset(form), values);
  }

  // The copies of a value along `axis`, side by side in each lane; a single group if the value has
  // no lanes and `vector` does not ask for them.
  const UOp* Group(const UOp* u, const UOp* axis, bool vector, AxisValues& values) {
    const int size = static_cast<int>(axis->range_size());
    if (u->op == Op::kLoad && (IsVector(u) || !vector)) {
      const UOp* index = u->src(0);
      if (HoldsGroups(index, axis)) {
        const UOp* gate = index->source_count == 3 ? Copy(index->src(2), values) : nullptr;
        return LoadNeighbours(index->src(0), GroupOffset(index, axis, values), gate,
                              IsVector(u) ? size * Width() : size);
      }
      if (const UOp* along = TransposedAxis(u, axis)) {
        return ExpandTransposed(u, along, axis, values);
      }
    }
    std::vector<const UOp*> parts;
    ForEach(sets_.Bit(axis), values, [&] {
      parts.push_back(Copy(u, values));
      vector |= parts.back()->dtype.lanes != 1;
    });
    if (vector) {
      for (const UOp*& p : parts) p = Vector(p);
    }
    return g_.Make(Op::kInterleave, u->dtype.WithLanes(size * (vector ? Width() : 1)), parts);
  }

  const UOp* StoreGroups(const UOp* store, const UOp* axis, AxisValues& values) {
    const UOp* value = Group(store->src(1), axis, /*vector=*/true, values);
    const UOp* index = store->src(0);
    const int count = value->dtype.lanes;
    const UOp* lanes = g_.Make(Op::kLanes, kIndexType.WithLanes(count), {});
    const UOp* offset = g_.Make(Op::kBroadcast, lanes->dtype, {GroupOffset(index, axis, values)});
    const UOp* gate = index->source_count == 3 ? Copy(index->src(2), values) : nullptr;
    if (gate != nullptr) gate = g_.Make(Op::kBroadcast, kBoolType.WithLanes(count), {gate});
    return Store(g_, Index(g_, index->src(0), Add(g_, offset, lanes), gate), value);
  }

  // Whether a source of `u` was expanded although `u` depends on no register axis itself.
  bool HasRegisters(const UOp* u) const {
    for (const UOp* s : u->src()) {
      if (!copies_[s->id].empty() || chained_.contains(s)) return true;
    }
    return false;
  }

  const UOp* ExpandPlain(const UOp* u, AxisValues& values) {
    if (u->source_count == 2 && chained_.contains(u->src(1))) {
      const UOp* start = Copy(u->src(0), values);
      if (IsVector(u)) start = Vector(start);
      return Continue(u->src(1), start, Closed(u->src(1)), values);
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
  const UOp* ExpandOffset(const LinearForm& form, const UOp* common, AxisValues& values) {
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
                         AxisValues& values) {
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

  // The axes of a REDUCE that are unrolled.
  uint64_t Closed(const UOp* reduce) const {
    uint64_t closed = 0;
    for (const UOp* r : reduce->src().subspan(1)) closed |= sets_.Bit(r);
    return closed & unrolled_bits_;
  }

  // Combines the copies of a REDUCE's value.
  const UOp* ExpandReduce(const UOp* u, AxisValues& values) {
    const Op op = u->reduce_op();
    std::vector<const UOp*> terms;
    AxisValues inner = values;
    ForEach(Closed(u), inner, [&] { terms.push_back(Copy(u->src(0), inner)); });
    while (terms.size() > 1) {  // A balanced tree: shorter chains of latency.
      std::vector<const UOp*> next;
      for (size_t i = 0; i + 1 < terms.size(); i += 2) {
        next.push_back(Binary(g_, op, terms[i], terms[i + 1]));
      }
      if (terms.size() % 2 != 0) next.push_back(terms.back());
      terms.swap(next);
    }
    const UOp* result = terms[0];
    if (ClosesLanes(u)) {
      result = g_.Make(Op::kHorizontal, u->dtype, {Vector(result)}, {static_cast<int64_t>(op), 1});
    }
    return result;
  }

  const UOp* ExpandScanAt(const UOp* u, AxisValues values) {
    std::vector<int64_t> at;
    for (const UOp* r : u->src().subspan(1)) at.push_back(values[BitNumber(r)]);
    return ExpandScan(g_, u, lane_, std::move(at), [&](const std::vector<int64_t>& place) {
      for (size_t k = 0; k < place.size(); ++k) values[BitNumber(u->src(k + 1))] = place[k];
      return Copy(u->src(0), values);
    });
  }

  // `start`, then the copies of a REDUCE's value along the axes in `closed`, one after the other.
  const UOp* Continue(const UOp* u, const UOp* start, uint64_t closed, AxisValues values) {
    if ((closed & matrix_bit_) != 0) {
      if (const UOp* sum = ExpandMatrix(u, start, closed, values)) return sum;
    }
    ForEach(closed, values, [&] {
      const UOp* term = Copy(u->src(0), values);
      if (start->dtype.lanes != 1) term = Vector(term);
      if (term->dtype.lanes != 1) start = Vector(start);
      start = Binary(g_, u->reduce_op(), start, term);
    });
    return start;
  }

  // A sum of products by matrix instructions; nullptr if the accumulator has not enough lanes.
  const UOp* ExpandMatrix(const UOp* u, const UOp* start, uint64_t closed, AxisValues& values) {
    absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(u->src(0));
    if (!factors.ok()) return nullptr;
    const MatrixInstruction& instruction = MatrixInstructions()[factors->instruction];
    if (lane_ == nullptr || !HasLanes(instruction, Width())) return nullptr;
    const UOp* axis = sets_.Members(matrix_bit_)[0];
    QUERN_CHECK(axis->range_size() == instruction.group);
    const uint64_t others = closed & ~matrix_bit_;
    const UOp* sum = Vector(start);
    ForEach(others, values, [&] {
      const UOp* a = Group(factors->a, axis, /*vector=*/false, values);
      const UOp* b = Group(factors->b, axis, /*vector=*/false, values);
      sum = g_.Make(Op::kMatrix, sum->dtype, {sum, a, b}, {factors->instruction, 0});
    });
    return sum;
  }

  UOpGraph& g_;
  const UOp* store_;
  RangeSets sets_;
  const UOp* lane_ = nullptr;
  uint64_t lane_bit_ = 0;
  uint64_t unrolled_bits_ = 0;
  uint64_t matrix_bit_ = 0;            // the axis that a matrix instruction sums
  const UOp* group_ = nullptr;         // the axis whose copies of the store are one
  const UOp* grouped_load_ = nullptr;  // the value of such a store, if it is loaded as it lies
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
