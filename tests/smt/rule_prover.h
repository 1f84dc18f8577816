#ifndef QUERN_TESTS_SMT_RULE_PROVER_H_
#define QUERN_TESTS_SMT_RULE_PROVER_H_

#include <z3++.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rewrite/evaluate.h"
#include "rewrite/rule.h"
#include "tests/smt/rule_formula.h"

namespace quern {

/// How sure we are of a rule, from best to worst.
enum class Certainty : uint8_t { kProved, kGrid, kTested, kRefuted };

inline std::string_view CertaintyName(Certainty c) {
  constexpr std::string_view kNames[] = {"proved", "grid", "tested", "refuted"};
  return kNames[static_cast<size_t>(c)];
}

struct Verdict {
  Certainty certainty = Certainty::kProved;
  std::string detail;  ///< the sorts it was proved for, the number of cases, or a counterexample
};

/// Proves rules one after another: with symbols for everything, else with numbers for the
/// constants (up to 64), else by trying random values.
class RuleProver {
 public:
  Verdict Prove(const Rule& rule) {
    Verdict verdict;
    std::vector<std::string> proved;
    for (const Theory& theory : Theories(rule)) {
      const bool required = IsRequired(theory);
      std::string counterexample;
      switch (Ask(rule, theory, {}, required ? kEffort : kOptionalEffort, &counterexample)) {
        case z3::unsat:
          if (!theory.fused) proved.push_back(theory.Name());
          continue;
        case z3::sat:
          return {Certainty::kRefuted, theory.Name() + ": " + counterexample};
        case z3::unknown:
          break;
      }
      if (!required) continue;  // It is proved for the narrower types.
      const Verdict weaker = WithoutProof(rule, theory);
      if (weaker.certainty == Certainty::kRefuted) return weaker;
      if (weaker.certainty > verdict.certainty) verdict = weaker;
    }
    if (!proved.empty()) {
      std::string names;
      for (const std::string& name : proved) names += (names.empty() ? "" : ", ") + name;
      verdict.detail += (verdict.detail.empty() ? "" : "; proved for ") + names;
    }
    return verdict;
  }

 private:
  // Effort in the solver's own units, so that the answer does not depend on how busy the machine
  // is; a few million are a second.
  static constexpr unsigned kEffort = 3000000;
  static constexpr unsigned kOptionalEffort = 300000;
  static constexpr unsigned kGridEffort = 1000000;
  static constexpr unsigned kMostMilliseconds = 120000;
  static constexpr int kGridCases = 200;
  static constexpr int kTestCases = 20000;

  static std::vector<Theory> Theories(const Rule& rule) {
    using Kind = Theory::Kind;
    std::vector<Theory> theories;
    const bool integers = rule.domain == Domain::kIndex || rule.domain == Domain::kIntegral;
    if (integers) theories.push_back({Kind::kIntegers});
    if (rule.domain == Domain::kInteger || rule.domain == Domain::kIntegral) {
      for (int width : {8, 16, 32, 64}) {
        theories.push_back({Kind::kBits, width, true});
        theories.push_back({Kind::kBits, width, false});
      }
    }
    if (rule.domain == Domain::kBool) theories.push_back({Kind::kBool});
    if (rule.domain == Domain::kFloat) {
      for (int width : {16, 32, 64}) {
        theories.push_back({Kind::kFloat, width});
        if (HasMulAdd(rule)) theories.push_back({Kind::kFloat, width, true, /*fused=*/true});
      }
    }
    if (rule.domain == Domain::kFloatReassoc) theories.push_back({Kind::kReal});
    if (rule.domain == Domain::kAny) theories.push_back({Kind::kUninterpreted});
    return theories;
  }

  // Rules do not depend on the width; the narrowest types are where they would break first, and
  // where a proof is cheap.
  static bool IsRequired(const Theory& t) {
    if (t.kind == Theory::Kind::kBits) return t.width == 8;
    if (t.kind == Theory::Kind::kFloat) return t.width == 16;
    return true;
  }

  static bool HasMulAdd(const Rule& rule) {
    const Expr& e = rule.before;
    return std::any_of(e.tokens.begin(), e.tokens.begin() + e.size, [](const Token& t) {
      return t.kind == TokenKind::kOp && static_cast<Op>(t.value) == Op::kMulAdd;
    });
  }

  static z3::check_result Ask(const Rule& rule, const Theory& theory, const FixedConstants& fixed,
                              unsigned effort, std::string* counterexample) {
    // A context of its own, so that one hard rule does not slow down the next.
    z3::context context;
    try {
      z3::solver solver(context);
      z3::params params(context);
      params.set("rlimit", effort);
      params.set("timeout", kMostMilliseconds);
      solver.set(params);
      solver.add(RuleFormula(context, rule, theory, fixed).Counterexample());
      const z3::check_result result = solver.check();
      if (result == z3::sat && counterexample != nullptr) {
        *counterexample = solver.get_model().to_string();
        std::replace(counterexample->begin(), counterexample->end(), '\n', ' ');
      }
      return result;
    } catch (const z3::exception&) {
      return z3::unknown;
    }
  }

  // --- Constants from a grid ---

  static int CountConstants(const Rule& rule) {
    int count = 0;
    for (size_t i = 0; i < rule.before.size; ++i) {
      const Token t = rule.before.tokens[i];
      if (t.kind == TokenKind::kConstant) count = std::max(count, t.value + 1);
    }
    return count;
  }

  Verdict WithoutProof(const Rule& rule, const Theory& theory) {
    if (theory.kind == Theory::Kind::kFloat) {
      // No rule depends on the number of digits; a format of eight bits has every kind of value.
      Theory small = theory;
      small.width = 8;
      std::string counterexample;
      const z3::check_result result = Ask(rule, small, {}, 8 * kEffort, &counterexample);
      if (result == z3::sat) return {Certainty::kRefuted, counterexample};
      if (result == z3::unsat) return {Certainty::kGrid, "proved for an 8-bit float only"};
    }
    const int constants = CountConstants(rule);
    const bool has_grid = constants > 0 && (theory.kind == Theory::Kind::kIntegers ||
                                            theory.kind == Theory::Kind::kBits);
    if (has_grid) {
      const std::optional<Verdict> grid = OnGrid(rule, theory, constants);
      if (grid.has_value()) return *grid;
    }
    return Tested(rule, theory);
  }

  std::optional<Verdict> OnGrid(const Rule& rule, const Theory& theory, int constants) {
    int cases = 0;
    auto solve = [&](const FixedConstants& fixed) -> std::optional<Verdict> {
      ++cases;
      std::string counterexample;
      const z3::check_result result = Ask(rule, theory, fixed, kGridEffort, &counterexample);
      if (result == z3::unsat) return std::nullopt;
      if (result == z3::sat) return Verdict{Certainty::kRefuted, counterexample};
      return Verdict{Certainty::kTested, ""};
    };
    std::vector<FixedConstants> all;
    if (constants == 1) {
      for (int64_t c = -8; c <= 64; ++c) all.push_back({c});
    } else {
      std::mt19937_64 random(1);
      // Multiples are what most guards ask for, so they are drawn on purpose.
      for (int i = 0; i < kGridCases * 200; ++i) {
        auto draw = [&](int64_t bound) { return 1 + static_cast<int64_t>(random() % bound); };
        FixedConstants fixed;
        const int64_t a = draw(64);
        const int64_t b = draw(std::max<int64_t>(64 / a, 1));
        const int64_t any[] = {a, b, a * b, draw(64), -a, a * b - 1};
        for (int k = 0; k < constants; ++k) fixed[static_cast<size_t>(k)] = any[random() % 6];
        all.push_back(fixed);
      }
    }
    for (const FixedConstants& fixed : all) {
      if (cases >= kGridCases) break;
      if (!MayHold(rule, fixed)) continue;
      const std::optional<Verdict> bad = solve(fixed);
      if (!bad.has_value()) continue;
      if (bad->certainty == Certainty::kRefuted) return bad;
      return std::nullopt;
    }
    if (cases == 0) return std::nullopt;
    return Verdict{Certainty::kGrid, std::to_string(cases) + " cases of constants up to 64"};
  }

  // --- Evaluation of rules on numbers ---

  struct Values {
    ScalarType type;
    std::array<Scalar, 4> captures{};
    std::array<bool, 3> predicates{};
    std::array<Scalar, 4> constants{};
    int64_t slack = 0;         ///< how far the bounds of a capture are from its value
    bool bounds_known = true;  ///< else facts make an expression unknown
  };

  static bool MayHold(const Rule& rule, const FixedConstants& fixed) {
    if (rule.when.empty()) return true;
    Values v{ScalarType::kIndex};
    v.bounds_known = false;
    for (size_t i = 0; i < 4; ++i) v.constants[i].i = fixed[i].value_or(0);
    size_t position = 0;
    const std::optional<Scalar> holds = EvaluateAt(rule.when, position, v, false);
    return !holds.has_value() || holds->i != 0;
  }

  static std::optional<Scalar> EvaluateAt(const Expr& e, size_t& position, const Values& v,
                                          bool as_bool) {
    const Token t = e.tokens[position++];
    const size_t i = static_cast<size_t>(t.value);
    const bool is_float = IsFloat(v.type);
    auto integer = [](int64_t value) {
      Scalar s;
      s.i = value;
      return s;
    };
    switch (t.kind) {
      case TokenKind::kCapture:
        return v.captures[i];
      case TokenKind::kPredicate:
        return integer(v.predicates[i] ? 1 : 0);
      case TokenKind::kConstant:
        return v.constants[i];
      case TokenKind::kLowerBound:
        if (!v.bounds_known) return std::nullopt;
        return integer(v.captures[i].i - v.slack);
      case TokenKind::kUpperBound:
        if (!v.bounds_known) return std::nullopt;
        return integer(v.captures[i].i + v.slack);
      case TokenKind::kNumber: {
        Scalar s = integer(t.value);
        if (is_float && !as_bool) s.f = t.value;
        return s;
      }
      case TokenKind::kOp:
        break;
      default:
        return std::nullopt;
    }
    const Op op = static_cast<Op>(t.value);
    Scalar s[3];
    bool known = true;
    bool is_false = false;
    const int count = GetOpInfo(op).max_sources;
    for (int k = 0; k < count; ++k) {
      const std::optional<Scalar> x = EvaluateAt(e, position, v, op == Op::kWhere && k == 0);
      known = known && x.has_value();
      if (x.has_value()) {
        s[k] = *x;
        is_false = is_false || x->i == 0;
      }
    }
    if (!known)
      return op == Op::kAnd && is_false ? std::optional<Scalar>(integer(0)) : std::nullopt;
    bool overflow = false;
    const bool logic = op == Op::kNot && !is_float;
    const ScalarType to = GetOpInfo(op).comparison ? ScalarType::kBool : v.type;
    const Scalar result = Evaluate(op, logic ? ScalarType::kBool : v.type, to, s, &overflow);
    if (overflow) return std::nullopt;
    return result;
  }

  Verdict Tested(const Rule& rule, const Theory& theory) {
    using Kind = Theory::Kind;
    const bool is_real = theory.kind == Kind::kReal;
    if (!is_real && theory.kind != Kind::kIntegers) {
      return {Certainty::kTested, theory.Name() + " not decided"};
    }
    std::mt19937_64 random(7);
    int cases = 0;
    for (int i = 0; i < kTestCases * 20 && cases < kTestCases; ++i) {
      Values v{is_real ? ScalarType::kF64 : ScalarType::kIndex};
      v.slack = static_cast<int64_t>(random() % 3);
      auto draw = [&](bool constant) {
        Scalar s;
        s.i = static_cast<int64_t>(random() % (constant ? 40 : 400)) - (constant ? 5 : 200);
        // Positive, so that roots and logarithms are defined.
        if (is_real) s.f = 0.05 + static_cast<double>(random() % 1000) / 300;
        return s;
      };
      for (Scalar& s : v.captures) s = draw(false);
      for (Scalar& s : v.constants) s = draw(true);
      for (bool& b : v.predicates) b = random() % 2 != 0;
      size_t position = 0;
      if (!rule.when.empty()) {
        const std::optional<Scalar> holds = EvaluateAt(rule.when, position, v, false);
        if (!holds.has_value() || holds->i == 0) continue;
      }
      position = 0;
      const std::optional<Scalar> before = EvaluateAt(rule.before, position, v, false);
      position = 0;
      const std::optional<Scalar> after = EvaluateAt(rule.after, position, v, false);
      if (!before.has_value() || !after.has_value()) continue;
      ++cases;
      const bool same =
          is_real ? std::fabs(before->f - after->f) <= 1e-9 * std::max(1.0, std::fabs(before->f))
                  : before->i == after->i;
      if (!same) return {Certainty::kRefuted, "case " + std::to_string(i)};
    }
    return {Certainty::kTested, std::to_string(cases) + " random cases"};
  }
};

}  // namespace quern

#endif  // QUERN_TESTS_SMT_RULE_PROVER_H_
