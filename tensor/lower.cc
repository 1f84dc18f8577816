#include "tensor/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/linear.h"
#include "rewrite/range_sets.h"
#include "tensor/index_expression.h"

namespace quern::notation {
namespace {

// Stands for a loop of a reduction while reductions are compared.
constexpr int kPlaceholderAxis = 1 << 20;

class KernelLowering {
 public:
  KernelLowering(UOpGraph& g, const Formula& formula, const FormulaMeaning& meaning,
                 const std::vector<bool>& inlined, const LowerLimits& limits)
      : g_(g), formula_(formula), meaning_(meaning), inlined_(inlined), limits_(limits) {}

  absl::StatusOr<const UOp*> Run(int index) {
    const UOp* store = LowerStore(index, {});
    if (exhausted_) return Exhausted(index);
    return Renumber(Sink(g_, std::vector<const UOp*>{store}));
  }

  absl::StatusOr<const UOp*> Run(const StatementGroup& group) {
    const int last = group.statements.back();
    std::vector<const UOp*> loops;
    for (int v : group.shared.back()) {
      loops.push_back(NewRange(formula_.statements[last].variables[v].text, AxisType::kLoop));
    }
    HoldTemporaries(group.statements);
    std::vector<const UOp*> stores;
    for (size_t i = 0; i < group.statements.size(); ++i) {
      std::map<int, const UOp*> shared;
      for (size_t l = 0; l < loops.size(); ++l) shared[group.shared[i][l]] = loops[l];
      stores.push_back(LowerStore(group.statements[i], shared));
    }
    if (exhausted_) return Exhausted(last);
    return Renumber(Sink(g_, stores));
  }

  // Goes from the last statement back: the readers of a temporary say where it is read.
  StatementGroup Share(const std::vector<int>& statements) {
    HoldTemporaries(statements);
    const size_t variables = formula_.statements[statements.back()].variables.size();
    std::vector<const UOp*> loops;  // of the variables of the last statement
    std::vector<bool> is_shared(variables, true);
    std::vector<std::map<int, const UOp*>> of(statements.size());  // place → loop
    for (size_t v = 0; v < variables; ++v) {
      loops.push_back(
          NewRange(formula_.statements[statements.back()].variables[v].text, AxisType::kLoop));
      of.back()[static_cast<int>(v)] = loops.back();
    }
    for (size_t i = statements.size(); i-- > 0;) {
      if (i + 1 < statements.size()) of[i] = CommonPlaces(meaning_.names.written[statements[i]]);
      for (size_t v = 0; v < variables; ++v) {
        const bool found = std::any_of(of[i].begin(), of[i].end(),
                                       [&](const auto& entry) { return entry.second == loops[v]; });
        is_shared[v] = is_shared[v] && found;
      }
      LowerStore(statements[i], of[i]);
    }
    StatementGroup group = {statements, {}};
    for (size_t i = 0; i < statements.size(); ++i) {
      std::vector<int>& shared = group.shared.emplace_back();
      for (size_t v = 0; v < variables; ++v) {
        for (const auto& [place, loop] : of[i]) {
          if (is_shared[v] && loop == loops[v]) shared.push_back(place);
        }
      }
    }
    return group;
  }

 private:
  const TensorInfo& Tensor(int t) const { return meaning_.names.tensors[t]; }

  const UOp* NewRange(const std::string& variable, AxisType type) {
    if (next_axis_ >= limits_.axes) exhausted_ = true;
    return Range(g_, meaning_.size.at(variable), next_axis_++, type);
  }

  // `shared` gives the loops of some places of the left side.
  const UOp* LowerStore(int index, const std::map<int, const UOp*>& shared) {
    const Statement& statement = formula_.statements[index];
    const int written = meaning_.names.written[index];
    IndexScope scope;
    std::vector<const UOp*> place;
    for (size_t i = 0; i < statement.variables.size(); ++i) {
      const std::string& name = statement.variables[i].text;
      const auto loop = shared.find(static_cast<int>(i));
      place.push_back(loop != shared.end() ? loop->second : NewRange(name, AxisType::kLoop));
      scope[name] = place.back();
    }
    // Each store has reductions of its own, with axes of its own.
    inlined_values_.clear();
    reductions_.clear();
    const UOp* value = Lower(statement.value, scope, nullptr);
    const TensorInfo& output = Tensor(written);
    return Store(g_, Index(g_, Buffer(written), Offset(output, place)),
                 Cast(g_, value, output.dtype));
  }

  absl::Status Exhausted(int index) const {
    return absl::ResourceExhaustedError(
        Concat("the kernel of ", Tensor(meaning_.names.written[index]).name, " needs more than ",
               limits_.axes, " loops or ", limits_.steps, " operations"));
  }

  void HoldTemporaries(const std::vector<int>& statements) {
    for (size_t i = 0; i + 1 < statements.size(); ++i) {
      temporaries_[meaning_.names.written[statements[i]]] = static_cast<int>(i);
    }
  }

  // The loops that stand at the same place of a temporary wherever it is read, each once.
  std::map<int, const UOp*> CommonPlaces(int tensor) const {
    std::map<int, const UOp*> common;
    for (const auto& [read, place] : temporary_reads_) {
      if (read != tensor) continue;
      for (size_t d = 0; d < place.size(); ++d) {
        const auto [found, is_new] = common.try_emplace(static_cast<int>(d), place[d]);
        if (!is_new && found->second != place[d]) found->second = nullptr;
      }
    }
    std::set<const UOp*> seen;
    std::erase_if(common, [&](const auto& entry) {
      return entry.second == nullptr || entry.second->op != Op::kRange ||
             entry.second->range_type() != AxisType::kLoop || !seen.insert(entry.second).second;
    });
    return common;
  }

  const UOp* Buffer(int tensor) {
    const TensorInfo& t = Tensor(tensor);
    const auto temporary = temporaries_.find(tensor);
    if (temporary != temporaries_.end()) {
      return Scratch(g_, t.dtype, temporary->second, t.elements());
    }
    return Param(g_, t.dtype, t.slot, t.elements());
  }

  const UOp* Offset(const TensorInfo& t, const std::vector<const UOp*>& place) {
    LinearForm offset;
    int64_t stride = 1;
    for (size_t d = place.size(); d-- > 0; stride *= t.shape[d]) {
      QUERN_CHECK(AddScaled(offset, ToLinear(place[d]), stride));
    }
    return FromLinear(g_, offset);
  }

  const UOp* AndGate(const UOp* a, const UOp* b) {
    if (a == nullptr || a == b) return b;
    return b == nullptr ? a : And(g_, a, b);
  }

  // The condition that `place` lies inside `t`; nullptr where that is sure.
  const UOp* InsideGate(const TensorInfo& t, const std::vector<const UOp*>& place) {
    const UOp* gate = nullptr;
    for (size_t d = 0; d < place.size(); ++d) {
      const IndexInterval range = IndexBounds(place[d]);
      if (range.low < 0) {
        gate = AndGate(gate, Binary(g_, Op::kLe, IndexConst(g_, 0), place[d]));
      }
      if (range.high >= t.shape[d]) {
        gate = AndGate(gate, Lt(g_, place[d], IndexConst(g_, t.shape[d])));
      }
    }
    return gate;
  }

  // `gate` is the condition under which this value counts: where it is false nothing outside a
  // tensor may be read, and what the value is does not matter.
  const UOp* Lower(const Expr* e, const IndexScope& scope, const UOp* gate) {
    if (++steps_ > limits_.steps) exhausted_ = true;
    const auto typed = meaning_.types.type.find(e);
    QUERN_CHECK(typed != meaning_.types.type.end());
    const DType type = typed->second;
    if (exhausted_) return Zero(type);  // Unwinds fast; the result is thrown away.
    switch (e->kind) {
      case ExprKind::kInteger:
        if (IsFloat(type)) return FloatConst(g_, type, static_cast<double>(e->integer));
        if (IsIndex(type)) return IndexConst(g_, e->integer);
        return IntConst(g_, type, e->integer);
      case ExprKind::kReal:
        return FloatConst(g_, type, e->real);
      case ExprKind::kVariable:
        return scope.at(e->name);
      case ExprKind::kRead:
        return Cast(g_, LowerRead(e, scope, gate), type);
      case ExprKind::kCast:
        return Cast(g_, LowerCast(e, scope, gate), type);
      case ExprKind::kReduce:
        return Cast(g_, LowerReduce(e, scope, gate), type);
      case ExprKind::kOp:
        return LowerOp(e, scope, gate);
    }
    QUERN_CHECK(false);
  }

  const UOp* Zero(DType type) { return NumberConst(g_, type, 0); }

  const UOp* LowerOp(const Expr* e, const IndexScope& scope, const UOp* gate) {
    const UOp* a = Lower(e->args[0], scope, gate);
    if (e->args.size() == 1) {
      if (IsIndex(a->dtype) && e->op == Op::kNeg) return Mul(g_, a, IndexConst(g_, -1));
      return Unary(g_, e->op, a);
    }
    const UOp* b = Lower(e->args[1], scope, gate);
    if (e->args.size() == 2) return Binary(g_, e->op, a, b);
    return Where(g_, a, b, Lower(e->args[2], scope, gate));
  }

  const UOp* LowerCast(const Expr* e, const IndexScope& scope, const UOp* gate) {
    const UOp* x = Lower(e->args[0], scope, gate);
    // An index becomes an integer first; only that conversion has a meaning.
    if (IsIndex(x->dtype) && !IsInteger(e->dtype)) x = Cast(g_, x, kI64Type);
    return Cast(g_, x, e->dtype);
  }

  const UOp* LowerRead(const Expr* e, const IndexScope& scope, const UOp* gate) {
    const int t = meaning_.names.tensor.at(e->name);
    const TensorInfo& tensor = Tensor(t);
    std::vector<const UOp*> place;
    for (const Expr* a : e->args) place.push_back(LowerIndexExpression(g_, a, scope));
    const UOp* inside = InsideGate(tensor, place);
    // A read without a pad is inside whenever its gate is true; if that is sure, it needs no gate.
    const UOp* condition = e->padded ? AndGate(gate, inside) : gate;
    if (inside == nullptr) condition = nullptr;

    const int definition = meaning_.names.definition[t];
    if (definition < 0 || !inlined_[definition]) {
      if (temporaries_.contains(t)) temporary_reads_.emplace_back(t, place);
      return Load(g_, Index(g_, Buffer(t), Offset(tensor, place), condition));
    }
    const UOp* value = Inline(definition, place, condition);
    return e->padded && inside != nullptr ? Where(g_, inside, value, Zero(value->dtype)) : value;
  }

  const UOp* Inline(int definition, const std::vector<const UOp*>& place, const UOp* condition) {
    const auto key = std::make_tuple(definition, place, condition);
    if (const auto it = inlined_values_.find(key); it != inlined_values_.end()) return it->second;
    const Statement& statement = formula_.statements[definition];
    IndexScope inner;
    for (size_t d = 0; d < place.size(); ++d) inner[statement.variables[d].text] = place[d];
    const UOp* value = Lower(statement.value, inner, condition);
    value = Cast(g_, value, Tensor(meaning_.names.written[definition]).dtype);
    inlined_values_[key] = value;
    return value;
  }

  const UOp* LowerReduce(const Expr* e, const IndexScope& scope, const UOp* gate) {
    IndexScope inner = scope;
    std::vector<const UOp*> ranges;
    for (const Name& v : e->variables) {
      ranges.push_back(NewRange(v.text, AxisType::kReduce));
      inner[v.text] = ranges.back();
    }
    const UOp* value = Lower(e->args[0], inner, gate);
    value = Cast(g_, value, meaning_.types.accumulator.at(e));
    // Two reductions that differ only in the numbers of their loops are one.
    std::vector<const UOp*> placeholders;
    for (size_t i = 0; i < ranges.size(); ++i) {
      placeholders.push_back(Range(g_, ranges[i]->range_size(),
                                   kPlaceholderAxis + static_cast<int>(i), AxisType::kReduce));
    }
    const UOp* anonymous =
        Reduce(g_, e->op, Substitute(g_, value, ranges, placeholders), placeholders);
    const auto [it, fresh] = reductions_.try_emplace(anonymous, nullptr);
    if (fresh) it->second = Reduce(g_, e->op, value, ranges);
    return it->second;
  }

  // Loops of reductions that were found to be equal have left gaps.
  const UOp* Renumber(const UOp* sink) {
    std::vector<const UOp*> from;
    for (const UOp* u : Toposort(sink)) {
      if (u->op == Op::kRange) from.push_back(u);
    }
    SortByAxis(from);
    std::vector<const UOp*> to;
    for (size_t i = 0; i < from.size(); ++i) {
      to.push_back(Range(g_, from[i]->range_size(), static_cast<int>(i), from[i]->range_type()));
    }
    return Substitute(g_, sink, from, to);
  }

  UOpGraph& g_;
  const Formula& formula_;
  const FormulaMeaning& meaning_;
  const std::vector<bool>& inlined_;
  const LowerLimits& limits_;
  int next_axis_ = 0;
  int64_t steps_ = 0;
  bool exhausted_ = false;
  std::map<int, int> temporaries_;  // tensor → number
  std::vector<std::pair<int, std::vector<const UOp*>>> temporary_reads_;
  std::map<std::tuple<int, std::vector<const UOp*>, const UOp*>, const UOp*> inlined_values_;
  absl::flat_hash_map<const UOp*, const UOp*> reductions_;
};

}  // namespace

absl::StatusOr<const UOp*> LowerStatement(UOpGraph& graph, const Formula& formula,
                                          const FormulaMeaning& meaning, int statement,
                                          const std::vector<bool>& inlined,
                                          const LowerLimits& limits) {
  UOpGraph scratch;
  absl::StatusOr<const UOp*> sink =
      KernelLowering(scratch, formula, meaning, inlined, limits).Run(statement);
  if (!sink.ok()) return sink;
  return graph.Import(*sink);
}

StatementGroup FindSharedVariables(const Formula& formula, const FormulaMeaning& meaning,
                                   const std::vector<int>& statements,
                                   const std::vector<bool>& inlined) {
  UOpGraph scratch;
  const LowerLimits limits;
  return KernelLowering(scratch, formula, meaning, inlined, limits).Share(statements);
}

absl::StatusOr<const UOp*> LowerGroup(UOpGraph& graph, const Formula& formula,
                                      const FormulaMeaning& meaning, const StatementGroup& group,
                                      const std::vector<bool>& inlined, const LowerLimits& limits) {
  UOpGraph scratch;
  absl::StatusOr<const UOp*> sink =
      KernelLowering(scratch, formula, meaning, inlined, limits).Run(group);
  if (!sink.ok()) return sink;
  return graph.Import(*sink);
}

}  // namespace quern::notation
