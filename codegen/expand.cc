#include "codegen/expand.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "codegen/axis_values.h"
#include "codegen/expand_scan.h"
#include "codegen/fold_copy.h"
#include "codegen/map_statements.h"
#include "codegen/matrix_instructions.h"
#include "codegen/register_axes.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/outside.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// Expands one store. Every node has one copy for each combination of the unrolled axes that it
// depends on; copies are numbered with the first axis varying slowest.
class StatementExpander {
 public:
  // `number` is not that of any other store.
  StatementExpander(UOpGraph& graph, const UOp* store, const Target& target, int64_t number)
      : g_(graph), store_(store), sets_(store), axes_(sets_), target_(target), number_(number) {
    for (const UOp* r : sets_.ranges()) {
      if (r->range_type() == AxisType::kWarp) matrix_bit_ |= sets_.Bit(r);
    }
  }

  // Appends the copies of the store.
  void Run(std::vector<const UOp*>& statements) {
    if (axes_.unrolled_bits == 0 && axes_.lane == nullptr) {
      statements.push_back(store_);
      return;
    }
    const std::vector<const UOp*> order = Toposort(store_);
    FindChains(order);
    group_ = FindStoredGroups(axes_, store_);
    const UOp* value = store_->src(1);
    const UOp* loaded = value->op == Op::kCast ? value->src(0) : value;
    if (group_ != nullptr && loaded->op == Op::kLoad && IsVector(loaded)) {
      bool shared = false;
      for (const UOp* u : order) {
        for (const UOp* s : u->src()) {
          shared |= (s == loaded && u != value && u != store_) || (s == value && u != store_);
        }
      }
      if (!shared && CanLoadGroups(loaded, group_)) grouped_ = {value, loaded};
    }
    copies_.resize(store_->id + 1);
    const UOp* terms = AccumulatedTerms();
    if (!Accumulates() || !FillsRegisters()) number_ = 0;
    for (const UOp* u : order) {
      if (terms == nullptr || (u != store_ && u != value)) ExpandNode(u);
    }
    if (terms != nullptr) return Accumulate(terms, statements);
    for (const UOp* copy : copies_[store_->id]) {
      const bool nothing = Accumulates() && copy->src(1)->op == Op::kLoad;
      if (!nothing) statements.push_back(copy);
    }
  }

 private:
  uint64_t Unrolled(const UOp* u) const { return axes_.Unrolled(u); }
  bool IsVector(const UOp* u) const { return axes_.IsVector(u); }
  bool ClosesLanes(const UOp* reduce) const {
    return std::count(reduce->src().begin() + 1, reduce->src().end(), axes_.lane) != 0;
  }
  int Width() const { return axes_.width(); }

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

  // Whether the store only adds something to an accumulator in registers.
  bool Accumulates() const {
    const UOp* value = store_->src(1);
    const UOp* index = store_->src(0);
    if (index->src(0)->op != Op::kRegister || value->source_count != 2) return false;
    return value->src(0)->op == Op::kLoad && value->src(0)->src(0) == index;
  }

  // The REDUCE that it adds, or nullptr.
  const UOp* AccumulatedTerms() const {
    const UOp* value = store_->src(1);
    return Accumulates() && chained_.contains(value->src(1)) ? value->src(1) : nullptr;
  }

  // Vectors that all copies of the stored value take.
  int64_t Vectors() const { return VectorsOfOne() * Rows(); }
  int64_t VectorsOfOne() const {
    const int64_t lanes = axes_.lane == nullptr ? 1 : Width();
    const int64_t bytes = ByteSize(store_->src(1)->dtype.scalar) * lanes;
    return (bytes + target_.vector_bytes - 1) / target_.vector_bytes;
  }
  int64_t Rows() const {
    int64_t rows = 1;
    for (const UOp* r : sets_.Members(Unrolled(store_))) rows *= r->range_size();
    return rows;
  }

  // Whether the accumulators leave hardly a register besides those for one term.
  bool FillsRegisters() const {
    constexpr int64_t kSpare = 4;
    return Vectors() + VectorsOfOne() + 1 > target_.vector_registers - kSpare;
  }

  // Multiply-adds that wait for each other; more hide behind those of the next outputs.
  static constexpr int64_t kInFlight = 4;
  static bool IsProduct(const UOp* u) { return u->op == Op::kMul && IsFloat(u->dtype); }

  // In how many chains to add terms up. Each product in a chain is added by the instruction that
  // multiplies, but waits for the one before; in a tree half of them are added by others.
  size_t Chains(const std::vector<const UOp*>& terms) const {
    if (!std::all_of(terms.begin(), terms.end(), IsProduct)) return terms.size();
    const int64_t vectors = Vectors();
    return std::min(terms.size(), static_cast<size_t>((kInFlight + vectors - 1) / vectors));
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
        if (sum != start) statements.push_back(Store(g_, Copy(store_->src(0), values), sum));
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
    if (chained_.contains(u) || grouped_.contains(u)) return;
    std::vector<const UOp*>& copies = copies_[u->id];
    AxisValues values(sets_.ranges().size(), 0);
    if (u == store_ && group_ != nullptr) {
      ForEach(set & ~sets_.Bit(group_), values,
              [&] { copies.push_back(StoreGroups(u, group_, values)); });
      return;
    }
    if (const UOp* along = TransposedAxis(axes_, u, nullptr)) {
      ForEach(set, values, [&] { copies.push_back(ExpandTransposed(u, along, nullptr, values)); });
      return;
    }
    const LinearForm form = u->op == Op::kIndex ? ToLinear(u->src(1)) : LinearForm();
    const UOp* common = u->op == Op::kIndex ? CommonOffset(form) : nullptr;
    ForEach(set, values, [&] {
      switch (u->op) {
        case Op::kRange:
          copies.push_back(u == axes_.lane ? g_.Make(Op::kLanes, kIndexType.WithLanes(Width()), {})
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
      std::erase_if(start.terms, [&](const auto& term) { return term.first == axes_.lane; });
      start.constant += form.CoefficientOf(axes_.lane) * row;
      const UOp* gate = index->source_count == 3 ? index->src(2) : nullptr;
      if (gate != nullptr) gate = Substitute(g_, gate, {{axes_.lane}}, {{IndexConst(g_, row)}});
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

  bool CanLoadGroups(const UOp* load, const UOp* axis) const {
    return HoldsGroups(axes_, load->src(0), axis) || TransposedAxis(axes_, load, axis) != nullptr;
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
    if (u->op == Op::kCast && u->src(0)->op == Op::kLoad) {
      return Cast(g_, Group(u->src(0), axis, vector, values), u->dtype);
    }
    if (u->op == Op::kLoad && (IsVector(u) || !vector)) {
      const UOp* index = u->src(0);
      if (HoldsGroups(axes_, index, axis)) {
        const UOp* gate = index->source_count == 3 ? Copy(index->src(2), values) : nullptr;
        return LoadNeighbours(index->src(0), GroupOffset(index, axis, values), gate,
                              IsVector(u) ? size * Width() : size);
      }
      if (const UOp* along = TransposedAxis(axes_, u, axis)) {
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
    Arg arg = u->arg;
    if (u->op == Op::kLoad && dtype.lanes == 1 && !IsIndex(dtype)) arg.b = number_;
    return FoldCopy(g_, g_.Make(u->op, dtype, sources, arg));
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
      if ((Unrolled(term) == 0 && !IsVector(term)) || term == axes_.lane) continue;
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
    if (const int64_t stride = axes_.lane == nullptr ? 0 : form.CoefficientOf(axes_.lane);
        stride != 0) {
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
    return closed & axes_.unrolled_bits;
  }

  // Combines the copies of a REDUCE's value.
  const UOp* ExpandReduce(const UOp* u, AxisValues& values) {
    const Op op = u->reduce_op();
    std::vector<const UOp*> terms;
    AxisValues inner = values;
    ForEach(Closed(u), inner, [&] { terms.push_back(Copy(u->src(0), inner)); });
    const UOp* first = terms[0];
    if (op == Op::kAdd) std::erase_if(terms, IsOutside);
    if (terms.empty()) terms.push_back(first);
    if (op == Op::kAdd) {
      const size_t chains = Chains(terms);
      for (size_t i = chains; i < terms.size(); ++i) {
        terms[i % chains] = Binary(g_, op, terms[i % chains], terms[i]);
      }
      terms.resize(chains);
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
    if (ClosesLanes(u)) {
      result = g_.Make(Op::kHorizontal, u->dtype, {Vector(result)}, {static_cast<int64_t>(op), 1});
    }
    return result;
  }

  const UOp* ExpandScanAt(const UOp* u, AxisValues values) {
    std::vector<int64_t> at;
    for (const UOp* r : u->src().subspan(1)) at.push_back(values[BitNumber(r)]);
    return ExpandScan(g_, u, axes_.lane, std::move(at), [&](const std::vector<int64_t>& place) {
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
      if (u->reduce_op() == Op::kAdd && IsOutside(term)) return;
      if (start->dtype.lanes != 1) term = Vector(term);
      if (term->dtype.lanes != 1) start = Vector(start);
      start = Binary(g_, u->reduce_op(), start, term);
    });
    return start;
  }

  // A sum of products by matrix instructions; nullptr if the accumulator has not enough lanes.
  const UOp* ExpandMatrix(const UOp* u, const UOp* start, uint64_t closed, AxisValues& values) {
    absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(u->src(0), target_);
    if (!factors.ok()) return nullptr;
    const MatrixInstruction& instruction = MatrixInstructions()[factors->instruction];
    if (axes_.lane == nullptr || !HasLanes(instruction, Width())) return nullptr;
    const UOp* axis = sets_.Members(matrix_bit_)[0];
    QUERN_CHECK(axis->range_size() == instruction.group);
    const uint64_t others = closed & ~matrix_bit_;
    const UOp* sum = Vector(start);
    ForEach(others, values, [&] {
      const UOp* a = Group(factors->a, axis, /*vector=*/false, values);
      const UOp* b = Group(factors->b, axis, /*vector=*/false, values);
      sum = g_.Make(Op::kMatrix, sum->dtype,
                    {sum, Cast(g_, a, instruction.a), Cast(g_, b, instruction.b)},
                    {factors->instruction, 0});
    });
    return sum;
  }

  UOpGraph& g_;
  const UOp* store_;
  RangeSets sets_;
  RegisterAxes axes_;
  const Target& target_;
  int64_t number_;              // of loads that no other statement shares; 0 if it may
  uint64_t matrix_bit_ = 0;     // the axis that a matrix instruction sums
  const UOp* group_ = nullptr;  // the axis whose copies of the store are one
  // The value of such a store, if it is loaded as it lies, and the load if that is converted.
  absl::flat_hash_set<const UOp*> grouped_;
  absl::flat_hash_set<const UOp*> chained_;
  std::vector<std::vector<const UOp*>> copies_;  // by node id
};

}  // namespace

const UOp* Expand(UOpGraph& graph, const UOp* sink, const Target& target) {
  std::vector<const UOp*> copies;
  int64_t number = 0;
  return MapStatements(graph, sink, [&](const UOp* u) -> const UOp* {
    if (u->op != Op::kStore) return nullptr;
    copies.clear();
    StatementExpander(graph, u, target, ++number).Run(copies);
    return copies.size() == 1 ? copies[0] : graph.Make(Op::kBlock, kVoidType, copies);
  });
}

}  // namespace quern
