#ifndef QUERN_TESTS_RULE_INSTANCES_H_
#define QUERN_TESTS_RULE_INSTANCES_H_

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "rewrite/build.h"
#include "rewrite/match.h"
#include "rewrite/rule.h"
#include "tests/random_expression.h"

namespace quern {

/// The pattern of a rule with nodes for its captures: intervals, constants and types are drawn at
/// random, so some instances satisfy the guard and some do not.
struct RuleInstance {
  const UOp* before = nullptr;
  bool guard_holds = false;
  std::vector<std::pair<const UOp*, Bounds>> assumed;  ///< the intervals of the captures
};

class RuleInstances {
 public:
  RuleInstances(const Rule& rule, uint64_t seed) : rule_(rule), random_(seed) {}

  RuleInstance Draw(UOpGraph& g) {
    const DType type = DrawType();
    RuleInstance instance;
    binding_ = {};
    binding_.dtype = type;
    BoundsAnalysis bounds;
    for (int i = 0; i < 4; ++i) {
      const size_t at = static_cast<size_t>(i);
      binding_.values[at] = Capture(g, type, i);
      binding_.constants[at] = Constant(g, type);
      if (i < 3) binding_.predicates[at] = Capture(g, kBoolType, 8 + i);
      if (!IsIndex(type) && !IsInteger(type)) continue;
      const Bounds all = TypeBounds(type.scalar);
      Bounds narrow = all;
      if (Below(4) != 0) {
        narrow.min = std::max(all.min, static_cast<int64_t>(Below(25)) - 12);
        narrow.max = std::min(all.max, narrow.min + static_cast<int64_t>(Below(9)));
      } else if (IsIndex(type)) {
        narrow = {-1000, 1000};
      }
      instance.assumed.emplace_back(binding_.values[at], narrow);
      bounds.Assume(binding_.values[at], narrow);
    }
    // The pattern, built as if it were a result.
    Rule pattern = rule_;
    pattern.after = rule_.before;
    const CompiledRule compiled = CompileRule(rule_)[0];
    const bool is_bool = compiled.root_is_bool || GetOpInfo(compiled.root).comparison;
    const UOp* like = g.Make(Op::kConst, is_bool ? kBoolType : type, {}, {0, 0});
    instance.before = BuildResult(pattern, like, binding_, g);
    instance.guard_holds = GuardHolds(rule_, binding_, bounds);
    return instance;
  }

  /// Values for the captures, inside their intervals.
  std::vector<int64_t> DrawValues(const RuleInstance& instance) {
    std::vector<int64_t> values(16);
    for (int64_t& v : values) v = static_cast<int64_t>(random_());
    for (size_t i = 0; i < instance.assumed.size(); ++i) {
      const Bounds b = instance.assumed[i].second;
      const uint64_t span = static_cast<uint64_t>(b.max) - static_cast<uint64_t>(b.min);
      values[i] = static_cast<int64_t>(static_cast<uint64_t>(b.min) +
                                       (span == UINT64_MAX ? random_() : Below(span + 1)));
    }
    return values;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  DType DrawType() {
    const bool coin = Below(2) != 0;
    switch (rule_.domain) {
      case Domain::kIndex:
        return kIndexType;
      case Domain::kInteger:
        return coin ? kI32Type : DType(ScalarType::kU8);
      case Domain::kIntegral:
        return coin ? kI8Type : kIndexType;
      case Domain::kBool:
        return kBoolType;
      case Domain::kFloat:
        return coin ? kF32Type : kF16Type;
      case Domain::kFloatReassoc:
        return kF64Type;
      case Domain::kAny:
        return coin ? kF32Type : kIndexType;
    }
    return kIndexType;
  }

  const UOp* Capture(UOpGraph& g, DType type, int which) {
    // A range is never negative; a number from memory can be anything.
    if (IsIndex(type)) return Cast(g, Capture(g, kI64Type, which), kIndexType);
    return Load(
        g, Index(g, Param(g, type, static_cast<int64_t>(type.scalar), 16), IndexConst(g, which)));
  }

  const UOp* Constant(UOpGraph& g, DType type) {
    static constexpr int64_t kUsual[] = {1, 2, 3, 4, 6, 8, 12, -1, -2, -4, 0, 7};
    static constexpr double kFloats[] = {2, 0.5, 3, -4, 1, 0, -0.0, 7, 1e30};
    if (IsFloat(type)) return FloatConst(g, type, kFloats[Below(9)]);
    const int64_t value = Below(3) != 0 ? kUsual[Below(12)] : static_cast<int64_t>(Below(73)) - 8;
    return g.Make(Op::kConst, type, {}, {WrapIfFixed(type, value), 0});
  }
  static int64_t WrapIfFixed(DType type, int64_t value) {
    return IsIndex(type) ? value : WrapInteger(type.scalar, value);
  }

  const Rule& rule_;
  std::mt19937_64 random_;
  Binding binding_;
};

/// The memory and the assignment that DrawValues stands for.
struct InstanceMemory {
  const std::vector<int64_t>& values;
  Scalar operator()(ScalarType type, int64_t offset) const {
    static constexpr double kFloats[] = {0.0,  -0.0, 1,        -1,        2.5, -3,
                                         1e-3, 100,  INFINITY, -INFINITY, NAN, 0.1};
    const int64_t v = values[static_cast<size_t>(offset)];
    Scalar s;
    if (IsFloat(type)) {
      // f64 is what reassociating rules are tried with: real numbers only, and positive ones.
      s.f = type == ScalarType::kF64
                ? 0.25 + static_cast<double>(static_cast<uint64_t>(v) % 64) / 16
                : RoundFloat(type, kFloats[static_cast<uint64_t>(v) % 12]);
    } else {
      s.i = type == ScalarType::kBool ? v & 1 : WrapInteger(type, v);
    }
    return s;
  }
};

}  // namespace quern

#endif  // QUERN_TESTS_RULE_INSTANCES_H_
