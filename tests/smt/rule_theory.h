#ifndef QUERN_TESTS_SMT_RULE_THEORY_H_
#define QUERN_TESTS_SMT_RULE_THEORY_H_

#include <z3++.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rewrite/op.h"

namespace quern {

/// In what a rule is read: which sort the values have and what the operations mean. It is
/// docs/semantics.md once more, in the language of the solver.
struct Theory {
  enum class Kind : uint8_t { kIntegers, kBits, kBool, kFloat, kReal, kUninterpreted };
  Kind kind = Kind::kIntegers;
  int width = 0;          ///< kBits; of kFloat: 8, 16, 32 or 64
  bool is_signed = true;  ///< kBits
  bool fused = false;     ///< kFloat: whether muladd rounds once

  std::string Name() const {
    switch (kind) {
      case Kind::kIntegers:
        return "integers";
      case Kind::kBits:
        return (is_signed ? "i" : "u") + std::to_string(width);
      case Kind::kBool:
        return "bool";
      case Kind::kFloat:
        return "f" + std::to_string(width);
      case Kind::kReal:
        return "reals";
      case Kind::kUninterpreted:
        return "any type";
    }
    return "";
  }
};

/// The operations of the IR on the sort of a theory. What some of them demand of their operands (a
/// root of a negative real number has no value) is collected as assumptions.
class TheoryOperations {
 public:
  using Kind = Theory::Kind;

  TheoryOperations(z3::context& context, Theory theory)
      : z3_(context), theory_(theory), assumptions_(context) {}

  const z3::expr_vector& assumptions() const { return assumptions_; }
  void Assume(const z3::expr& e) { assumptions_.push_back(e); }

  z3::sort ValueSort() {
    switch (theory_.kind) {
      case Kind::kIntegers:
        return z3_.int_sort();
      case Kind::kBits:
        return z3_.bv_sort(static_cast<unsigned>(theory_.width));
      case Kind::kBool:
        return z3_.bool_sort();
      case Kind::kFloat:
        return theory_.width == 8    ? z3_.fpa_sort(4, 4)
               : theory_.width == 16 ? z3_.fpa_sort(5, 11)
               : theory_.width == 32 ? z3_.fpa_sort(8, 24)
                                     : z3_.fpa_sort(11, 53);
      case Kind::kReal:
        return z3_.real_sort();
      case Kind::kUninterpreted:
        return z3_.uninterpreted_sort("value");
    }
    return z3_.int_sort();
  }

  z3::expr FloatNumber(double value) {
    return z3::expr(z3_, Z3_mk_fpa_numeral_double(z3_, value, ValueSort()));
  }

  z3::expr Number(int64_t value, bool as_bool) {
    if (as_bool || theory_.kind == Kind::kBool) return z3_.bool_val(value != 0);
    switch (theory_.kind) {
      case Kind::kBits:
        return z3_.bv_val(value, static_cast<unsigned>(theory_.width));
      case Kind::kFloat:
        return FloatNumber(static_cast<double>(value));
      case Kind::kReal:
        return z3_.real_val(std::to_string(value).c_str());
      default:
        return z3_.int_val(value);
    }
  }

  /// The result of an operation; the sort of its operands says whether it is logic.
  z3::expr Apply(Op op, const std::vector<z3::expr>& s) {
    if (op == Op::kWhere) return z3::ite(s[0], s[1], s[2]);
    if (s[0].is_bool()) return Logic(op, s);
    switch (theory_.kind) {
      case Kind::kIntegers:
        return OnIntegers(op, s);
      case Kind::kBits:
        return OnBits(op, s);
      case Kind::kFloat:
        return OnFloats(op, s);
      case Kind::kReal:
        return OnReals(op, s);
      default:
        return Opaque(op, s, GetOpInfo(op).comparison);
    }
  }

  [[noreturn]] void Unknown(Op op) {
    throw z3::exception(("no meaning for " + std::string(OpName(op))).c_str());
  }

  z3::expr Logic(Op op, const std::vector<z3::expr>& s) {
    switch (op) {
      case Op::kNot:
        return !s[0];
      case Op::kAnd:
      case Op::kMul:
      case Op::kMin:
        return s[0] && s[1];
      case Op::kOr:
      case Op::kAdd:
      case Op::kMax:
        return s[0] || s[1];
      case Op::kXor:
      case Op::kNe:
        return s[0] != s[1];
      case Op::kEq:
        return s[0] == s[1];
      case Op::kLt:
        return !s[0] && s[1];
      case Op::kLe:
        return !s[0] || s[1];
      default:
        Unknown(op);
    }
  }

  // div and mod of the solver have a remainder that is never negative.
  static z3::expr FloorDiv(const z3::expr& a, const z3::expr& b) {
    return z3::ite(b == 0, b.ctx().int_val(0), z3::ite(b > 0, a / b, (-a) / (-b)));
  }
  static z3::expr FloorMod(const z3::expr& a, const z3::expr& b) {
    return z3::ite(b == 0, a, z3::ite(b > 0, z3::mod(a, b), -z3::mod(-a, -b)));
  }
  static z3::expr Magnitude(const z3::expr& a) { return z3::ite(a < 0, -a, a); }

  z3::expr OnIntegers(Op op, const std::vector<z3::expr>& s) {
    const z3::expr& a = s[0];
    switch (op) {
      case Op::kAdd:
        return a + s[1];
      case Op::kSub:
        return a - s[1];
      case Op::kMul:
        return a * s[1];
      case Op::kMulAdd:
        return a * s[1] + s[2];
      case Op::kNeg:
        return -a;
      case Op::kAbs:
        return Magnitude(a);
      case Op::kFloorDiv:
        return FloorDiv(a, s[1]);
      case Op::kFloorMod:
        return FloorMod(a, s[1]);
      case Op::kTruncDiv: {
        const z3::expr q = Magnitude(a) / Magnitude(s[1]);
        return z3::ite(s[1] == 0, z3_.int_val(0), z3::ite((a < 0) != (s[1] < 0), -q, q));
      }
      case Op::kTruncMod: {
        const z3::expr r = z3::mod(Magnitude(a), Magnitude(s[1]));
        return z3::ite(s[1] == 0, a, z3::ite(a < 0, -r, r));
      }
      case Op::kMax:
        return z3::ite(a > s[1], a, s[1]);
      case Op::kMin:
        return z3::ite(a < s[1], a, s[1]);
      case Op::kLt:
        return a < s[1];
      case Op::kLe:
        return a <= s[1];
      case Op::kEq:
        return a == s[1];
      case Op::kNe:
        return a != s[1];
      default:
        Unknown(op);
    }
  }

  z3::expr Less(const z3::expr& a, const z3::expr& b) {
    return theory_.is_signed ? a < b : z3::ult(a, b);
  }

  z3::expr OnBits(Op op, const std::vector<z3::expr>& s) {
    const z3::expr& a = s[0];
    const z3::expr zero = Number(0, false);
    const z3::expr b = s.size() > 1 ? s[1] : zero;
    const z3::expr amount = b & Number(theory_.width - 1, false);
    switch (op) {
      case Op::kAdd:
        return a + b;
      case Op::kSub:
        return a - b;
      case Op::kMul:
        return a * b;
      case Op::kMulAdd:
        return a * b + s[2];
      case Op::kNeg:
        return -a;
      case Op::kAbs:
        return theory_.is_signed ? z3::ite(a < zero, -a, a) : a;
      case Op::kNot:
        return ~a;
      case Op::kAnd:
        return a & b;
      case Op::kOr:
        return a | b;
      case Op::kXor:
        return a ^ b;
      case Op::kShl:
        return z3::shl(a, amount);
      case Op::kShr:
        return theory_.is_signed ? z3::ashr(a, amount) : z3::lshr(a, amount);
      case Op::kFloorDiv: {
        if (!theory_.is_signed) return z3::ite(b == zero, zero, z3::udiv(a, b));
        const z3::expr q = a / b;
        const z3::expr r = z3::srem(a, b);
        return z3::ite(b == zero, zero,
                       z3::ite(r != zero && (r < zero) != (b < zero), q - Number(1, false), q));
      }
      case Op::kFloorMod:
        return z3::ite(b == zero, a, theory_.is_signed ? z3::smod(a, b) : z3::urem(a, b));
      case Op::kTruncDiv:
        return z3::ite(b == zero, zero, theory_.is_signed ? a / b : z3::udiv(a, b));
      case Op::kTruncMod:
        return z3::ite(b == zero, a, theory_.is_signed ? z3::srem(a, b) : z3::urem(a, b));
      case Op::kMax:
        return z3::ite(Less(b, a), a, b);
      case Op::kMin:
        return z3::ite(Less(a, b), a, b);
      case Op::kLt:
        return Less(a, b);
      case Op::kLe:
        return !Less(b, a);
      case Op::kEq:
        return a == b;
      case Op::kNe:
        return a != b;
      default:
        Unknown(op);
    }
  }

  z3::expr Wrap(Z3_ast ast) { return z3::expr(z3_, ast); }

  z3::expr OnFloats(Op op, const std::vector<z3::expr>& s) {
    const z3::expr rne = Wrap(Z3_mk_fpa_rne(z3_));
    const z3::expr& a = s[0];
    const z3::expr b = s.size() > 1 ? s[1] : a;
    const z3::expr a_is_nan = Wrap(Z3_mk_fpa_is_nan(z3_, a));
    switch (op) {
      case Op::kAdd:
        return Wrap(Z3_mk_fpa_add(z3_, rne, a, b));
      case Op::kSub:
        return Wrap(Z3_mk_fpa_sub(z3_, rne, a, b));
      case Op::kMul:
        return Wrap(Z3_mk_fpa_mul(z3_, rne, a, b));
      case Op::kDiv:
        return Wrap(Z3_mk_fpa_div(z3_, rne, a, b));
      case Op::kMulAdd:
        if (theory_.fused) return Wrap(Z3_mk_fpa_fma(z3_, rne, a, b, s[2]));
        return Wrap(Z3_mk_fpa_add(z3_, rne, Wrap(Z3_mk_fpa_mul(z3_, rne, a, b)), s[2]));
      case Op::kNeg:
        return Wrap(Z3_mk_fpa_neg(z3_, a));
      case Op::kAbs:
        return Wrap(Z3_mk_fpa_abs(z3_, a));
      case Op::kSqrt:
        return Wrap(Z3_mk_fpa_sqrt(z3_, rne, a));
      case Op::kFloor:
        return Wrap(Z3_mk_fpa_round_to_integral(z3_, Wrap(Z3_mk_fpa_rtn(z3_)), a));
      case Op::kMax:
        return z3::ite(a_is_nan || Wrap(Z3_mk_fpa_gt(z3_, a, b)), a, b);
      case Op::kMin:
        return z3::ite(a_is_nan || Wrap(Z3_mk_fpa_lt(z3_, a, b)), a, b);
      case Op::kLt:
        return Wrap(Z3_mk_fpa_lt(z3_, a, b));
      case Op::kLe:
        return Wrap(Z3_mk_fpa_leq(z3_, a, b));
      case Op::kEq:
        return Wrap(Z3_mk_fpa_eq(z3_, a, b));
      case Op::kNe:
        return !Wrap(Z3_mk_fpa_eq(z3_, a, b));
      default:
        Unknown(op);
    }
  }

  // Over the reals a rule is only asked where every operation is defined.
  z3::expr OnReals(Op op, const std::vector<z3::expr>& s) {
    const z3::expr& a = s[0];
    switch (op) {
      case Op::kDiv:
        assumptions_.push_back(s[1] != 0);
        return a / s[1];
      case Op::kSqrt: {
        z3::func_decl root = z3_.function("sqrt", z3_.real_sort(), z3_.real_sort());
        assumptions_.push_back(a >= 0 && root(a) >= 0 && root(a) * root(a) == a);
        return root(a);
      }
      case Op::kExp:
      case Op::kExp2:
      case Op::kLog:
      case Op::kLog2:
        Unknown(op);
      default:
        return OnIntegers(op, s);
    }
  }

  z3::expr Opaque(Op op, const std::vector<z3::expr>& s, bool comparison) {
    const std::string name(OpName(op));
    const z3::sort result = comparison ? z3_.bool_sort() : ValueSort();
    if (s.size() == 1) return z3_.function(name.c_str(), s[0].get_sort(), result)(s[0]);
    return z3_.function(name.c_str(), s[0].get_sort(), s[1].get_sort(), result)(s[0], s[1]);
  }

 private:
  z3::context& z3_;
  Theory theory_;
  z3::expr_vector assumptions_;
};

}  // namespace quern

#endif  // QUERN_TESTS_SMT_RULE_THEORY_H_
