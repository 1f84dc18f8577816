#ifndef QUERN_TESTS_UNIT_ELEMENTWISE_EVALUATOR_H_
#define QUERN_TESTS_UNIT_ELEMENTWISE_EVALUATOR_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "rewrite/evaluate.h"
#include "rewrite/graph.h"

namespace quern {

/// Evaluates a tree of scalar elementwise operations over loads, for many values of the loads. A
/// load stands for the input whose number is the slot of its buffer.
class ElementwiseEvaluator {
 public:
  enum class MulAdd { kRoundedOnce, kRoundedTwice };

  ElementwiseEvaluator(const UOp* root, MulAdd mul_add) : mul_add_(mul_add) {
    std::unordered_map<const UOp*, int> places;
    for (const UOp* u : Toposort(root)) {
      if (u->op != Op::kLoad && u->op != Op::kConst && !IsElementwise(u->op)) continue;
      Step step{u->op, u->dtype.scalar, u->dtype.scalar, {}};
      if (u->op == Op::kLoad) step.sources.push_back(static_cast<int>(u->src(0)->src(0)->slot()));
      if (IsElementwise(u->op)) {
        for (const UOp* s : u->src()) step.sources.push_back(places.at(s));
        step.from = u->src(u->source_count - 1)->dtype.scalar;
      }
      places[u] = static_cast<int>(steps_.size());
      Scalar value{.i = 0};
      if (u->op == Op::kConst)
        value = Scalar{.i = u->arg.a};  // the bits of a double, or an integer
      values_.push_back(value);
      steps_.push_back(step);
    }
  }

  Scalar operator()(std::span<const Scalar> inputs) {
    bool overflow = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.op == Op::kConst) continue;
      if (step.op == Op::kLoad) {
        values_[i] = inputs[static_cast<size_t>(step.sources[0])];
        continue;
      }
      Scalar s[3];
      for (size_t j = 0; j < step.sources.size(); ++j) {
        s[j] = values_[static_cast<size_t>(step.sources[j])];
      }
      if (step.op == Op::kMulAdd && mul_add_ == MulAdd::kRoundedTwice) {
        const Scalar sum[2] = {Evaluate(Op::kMul, step.from, step.to, s, &overflow), s[2]};
        values_[i] = Evaluate(Op::kAdd, step.from, step.to, sum, &overflow);
      } else {
        values_[i] = Evaluate(step.op, step.from, step.to, s, &overflow);
      }
    }
    return values_.back();
  }
  double operator()(double x) {
    const Scalar input{.f = x};
    return (*this)(std::span<const Scalar>(&input, 1)).f;
  }

  /// Operations that a machine performs: neither constants nor loads nor bitcasts.
  int operations() const {
    int count = 0;
    for (const Step& step : steps_) {
      count += IsElementwise(step.op) && step.op != Op::kBitcast ? 1 : 0;
    }
    return count;
  }

 private:
  struct Step {
    Op op;
    ScalarType from;
    ScalarType to;
    std::vector<int> sources;  // of a load: the number of the input
  };

  MulAdd mul_add_;
  std::vector<Step> steps_;
  std::vector<Scalar> values_;
};

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_ELEMENTWISE_EVALUATOR_H_
