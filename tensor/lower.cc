#include "tensor/lower.h"

#include <map>
#include <optional>
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
    const Statement& statement = formula_.statements[index];
    const TensorInfo& output = Tensor(meaning_.names.written[index]);
    IndexScope scope;
    std::vector<const UOp*> place;
    for (const Name& v : statement.variables) {
      place.push_back(NewRange(v.text, AxisType::kLoop));
      scope[v.text] = place.back();
    }
    const UOp* value = Lower(statement.value, scope, nullptr);
    if (exhausted_) {
      return absl::ResourceExhaustedError(Concat("the kernel of ", output.name, " needs more than ",
                                                 limits_.axes, " loops or ", limits_.steps,
                                                 " operations"));
    }
    const UOp* element = Index(g_, Buffer(output), Offset(output, place));
    const UOp* store = Store(g_, element, Cast(g_, value, output.dtype));
    return Renumber(Sink(g_, std::vector<const UOp*>{store}));
  }

 private:
  const TensorInfo& Tensor(int t) const { return meaning_.names.tensors[t]; }

  const UOp* NewRange(const std::string& variable, AxisType type) {
    if (next_axis_ >= limits_.axes) exhausted_ = true;
    return Range(g_, meaning_.size.at(variable), next_axis_++, type);
  }

  const UOp* Buffer(const TensorInfo& t) { return Param(g_, t.dtype, t.slot, t.elements()); }

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
      return Load(g_, Index(g_, Buffer(tensor), Offset(tensor, place), condition));
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

}  // namespace quern::notation
