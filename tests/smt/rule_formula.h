#ifndef QUERN_TESTS_SMT_RULE_FORMULA_H_
#define QUERN_TESTS_SMT_RULE_FORMULA_H_

#include <z3++.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewrite/rule.h"
#include "tests/smt/rule_theory.h"

namespace quern {

/// Values for c0…c3, where they are not symbols.
using FixedConstants = std::array<std::optional<int64_t>, 4>;

/// A rule as a formula: `assumptions` hold wherever the rule is used, `before` and `after` must be
/// equal under them.
class RuleFormula {
 public:
  RuleFormula(z3::context& context, const Rule& rule, Theory theory, FixedConstants fixed = {})
      : z3_(context), rule_(rule), theory_(theory), fixed_(fixed), ops_(context, theory) {}

  /// Satisfiable if the rule is wrong.
  z3::expr Counterexample() {
    const bool as_bool = theory_.kind == Theory::Kind::kBool || IsBoolExpr(rule_.before, 0);
    z3::expr before = Read(rule_.before, as_bool);
    z3::expr after = Read(rule_.after, as_bool);
    z3::expr guard = z3_.bool_val(true);
    if (!rule_.when.empty()) guard = ReadGuard();
    z3::expr formula = guard && before != after;
    const z3::expr_vector& assumed = ops_.assumptions();
    for (unsigned i = 0; i < assumed.size(); ++i) formula = formula && assumed[i];
    return formula;
  }

 private:
  using Kind = Theory::Kind;

  static bool IsBoolExpr(const Expr& e, size_t position) {
    const Token t = e.tokens[position];
    if (t.kind == TokenKind::kPredicate) return true;
    if (t.kind != TokenKind::kOp) return false;
    const Op op = static_cast<Op>(t.value);
    if (GetOpInfo(op).comparison) return true;
    if (op == Op::kWhere) return IsBoolExpr(e, EndOfExpr(e, position + 1));
    if (op == Op::kNot || op == Op::kAnd || op == Op::kOr || op == Op::kXor) {
      return IsBoolExpr(e, position + 1);
    }
    return false;
  }

  z3::expr Symbol(const std::string& name) { return z3_.constant(name.c_str(), ops_.ValueSort()); }

  z3::expr Constant(int16_t i) {
    const std::optional<int64_t> fixed = fixed_[static_cast<size_t>(i)];
    return fixed.has_value() ? ops_.Number(*fixed, false) : Symbol("c" + std::to_string(i));
  }
  z3::expr Capture(int16_t i) { return Symbol(std::string(1, "xyzw"[i])); }

  // --- The two sides ---

  z3::expr Read(const Expr& e, bool as_bool) {
    size_t position = 0;
    return ReadAt(e, position, as_bool);
  }

  z3::expr ReadAt(const Expr& e, size_t& position, bool as_bool) {
    const Token t = e.tokens[position++];
    switch (t.kind) {
      case TokenKind::kCapture:
        return Capture(t.value);
      case TokenKind::kPredicate:
        return z3_.bool_const(std::string(1, "pqr"[t.value]).c_str());
      case TokenKind::kConstant:
        return Constant(t.value);
      case TokenKind::kNegativeZero:
        return ops_.FloatNumber(-0.0);
      case TokenKind::kInfinity:
        return z3::expr(z3_, Z3_mk_fpa_inf(z3_, ops_.ValueSort(), false));
      case TokenKind::kOp:
        break;
      default:
        return ops_.Number(t.value, as_bool);
    }
    const Op op = static_cast<Op>(t.value);
    const bool comparison = GetOpInfo(op).comparison;
    std::vector<z3::expr> s;
    for (int i = 0; i < GetOpInfo(op).max_sources; ++i) {
      const bool operand_is_bool = op == Op::kWhere && i == 0 ? true
                                   : comparison               ? theory_.kind == Kind::kBool
                                                              : as_bool;
      s.push_back(ReadAt(e, position, operand_is_bool));
    }
    return ops_.Apply(op, s);
  }

  // --- The guard: mathematical integers, whatever the values are ---

  z3::expr ReadGuard() {
    size_t position = 0;
    if (theory_.kind == Kind::kFloat) return FloatGuard();
    if (theory_.kind == Kind::kReal) {
      return ReadAt(rule_.when, position, false);
    }
    return GuardAt(position);
  }

  // Wide enough that nothing in a guard wraps: a product of two values and some sums.
  unsigned GuardWidth() const { return static_cast<unsigned>(2 * theory_.width + 8); }

  z3::expr Extend(const z3::expr& value) {
    if (theory_.kind != Kind::kBits) return value;
    const unsigned more = GuardWidth() - static_cast<unsigned>(theory_.width);
    return theory_.is_signed ? z3::sext(value, more) : z3::zext(value, more);
  }

  z3::expr GuardNumber(int64_t value) {
    if (theory_.kind != Kind::kBits) return z3_.int_val(value);
    return z3_.bv_val(value, GuardWidth());
  }

  z3::expr GuardAt(size_t& position) {
    const Token t = rule_.when.tokens[position++];
    const bool is_bits = theory_.kind == Kind::kBits;
    switch (t.kind) {
      case TokenKind::kNumber:
        return GuardNumber(t.value);
      case TokenKind::kConstant:
        return Extend(Constant(t.value));
      case TokenKind::kLowerBound: {
        const z3::expr bound = Symbol(std::string("vmin_") + "xyzw"[t.value]);
        ops_.Assume(is_bits ? !ops_.Less(Capture(t.value), bound) : bound <= Capture(t.value));
        return Extend(bound);
      }
      case TokenKind::kUpperBound: {
        const z3::expr bound = Symbol(std::string("vmax_") + "xyzw"[t.value]);
        ops_.Assume(is_bits ? !ops_.Less(bound, Capture(t.value)) : Capture(t.value) <= bound);
        return Extend(bound);
      }
      case TokenKind::kIsSigned:
        return z3_.bool_val(theory_.is_signed);
      case TokenKind::kBits:
        return GuardNumber(theory_.width);
      case TokenKind::kHighest: {
        const unsigned ones = static_cast<unsigned>(theory_.width - (theory_.is_signed ? 1 : 0));
        return z3::lshr(z3_.bv_val(-1, GuardWidth()),
                        z3_.bv_val(GuardWidth() - ones, GuardWidth()));
      }
      case TokenKind::kOp:
        break;
      default:
        ops_.Unknown(Op::kConst);
    }
    const Op op = static_cast<Op>(t.value);
    const z3::expr a = GuardAt(position);
    if (op == Op::kNot) return !a;
    const z3::expr b = GuardAt(position);
    switch (op) {
      case Op::kAnd:
        return a.is_bool() ? a && b : BitAnd(a, b);
      case Op::kOr:
        return a || b;
      case Op::kAdd:
        return a + b;
      case Op::kSub:
        return a - b;
      case Op::kMul:
        return a * b;
      case Op::kFloorDiv:
        return ops_.FloorDiv(a, b);
      case Op::kFloorMod:
        return is_bits ? z3::smod(a, b) : ops_.FloorMod(a, b);
      case Op::kShl:
        return z3::shl(a, b);
      case Op::kMax:
        return z3::ite(a > b, a, b);
      case Op::kMin:
        return z3::ite(a < b, a, b);
      case Op::kLt:
        return a < b;
      case Op::kLe:
        return a <= b;
      case Op::kEq:
        return a == b;
      case Op::kNe:
        return a != b;
      default:
        ops_.Unknown(op);
    }
  }

  z3::expr BitAnd(const z3::expr& a, const z3::expr& b) {
    if (!a.is_bv()) ops_.Unknown(Op::kAnd);
    return a & b;
  }

  // Both c and 1/c are powers of two: nothing but zeros in their fractions.
  z3::expr FloatGuard() {
    const z3::expr c = Constant(rule_.when.tokens[0].value);
    const z3::expr inverse = ops_.OnFloats(Op::kDiv, {ops_.FloatNumber(1), c});
    auto is_power = [&](const z3::expr& f) {
      const unsigned fraction = theory_.width == 16 ? 10 : theory_.width == 32 ? 23 : 52;
      const z3::expr raw = ops_.Wrap(Z3_mk_fpa_to_ieee_bv(z3_, f));
      return ops_.Wrap(Z3_mk_fpa_is_normal(z3_, f)) &&
             raw.extract(fraction - 1, 0) == z3_.bv_val(0, fraction);
    };
    return is_power(c) && is_power(inverse);
  }

  z3::context& z3_;
  const Rule& rule_;
  Theory theory_;
  FixedConstants fixed_;
  TheoryOperations ops_;
};

}  // namespace quern

#endif  // QUERN_TESTS_SMT_RULE_FORMULA_H_
