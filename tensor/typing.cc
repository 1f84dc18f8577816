#include "tensor/typing.h"

#include <algorithm>
#include <utility>

#include "rewrite/check.h"
#include "rewrite/concat.h"

namespace quern::notation {
namespace {

// A literal has no type until it meets a typed operand.
enum class Weak : uint8_t { kNo, kInteger, kReal };

struct Inferred {
  DType dtype;
  Weak weak = Weak::kNo;
};

bool NeedsFloat(Op op) {
  switch (op) {
    case Op::kDiv:
    case Op::kFloor:
    case Op::kSqrt:
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kLog2:
    case Op::kSin:
    case Op::kTanh:
    case Op::kErf:
      return true;
    default:
      return false;
  }
}

std::string TypeForPeople(DType t) { return IsIndex(t) ? "an index" : DTypeName(t); }

class Inference {
 public:
  Inference(const Formula& formula, const std::function<DType(const std::string&)>& tensor_type,
            ExprTypes& types)
      : formula_(formula), tensor_type_(tensor_type), types_(types) {}

  absl::StatusOr<DType> Root(const Expr* value) {
    absl::StatusOr<Inferred> t = Infer(value, /*wide=*/false);
    if (!t.ok()) return t.status();
    const DType dtype = Settle(value, *t);
    if (IsIndex(dtype)) {
      return Error(value, "an index is not a value that can be stored; cast it, as in i32(…)");
    }
    if (absl::Status s = CheckLiterals(value); !s.ok()) return s;
    return dtype;
  }

 private:
  absl::Status Error(const Expr* e, std::string_view message) const {
    return SourceError(formula_.text, e->span, message);
  }

  // Gives the literals below `e` their type. `e` is weak, so it holds nothing but literals and
  // operators (and comparisons, which have been settled before).
  void Assign(const Expr* e, DType dtype) {
    types_.type[e] = dtype;
    if (e->kind != ExprKind::kOp) return;
    for (size_t i = e->op == Op::kWhere ? 1 : 0; i < e->args.size(); ++i) Assign(e->args[i], dtype);
  }
  DType Settle(const Expr* e, const Inferred& t) {
    if (t.weak == Weak::kNo) return t.dtype;
    const DType dtype = t.weak == Weak::kInteger ? kI32Type : kF32Type;
    Assign(e, dtype);
    return dtype;
  }

  Inferred Record(const Expr* e, DType dtype) {
    types_.type[e] = dtype;
    return {dtype, Weak::kNo};
  }

  // Brings two operands to one type, settling a literal on either side.
  absl::StatusOr<Inferred> Unify(const Expr* at, const Expr* a, Inferred ta, const Expr* b,
                                 Inferred tb) {
    if (ta.weak != Weak::kNo && tb.weak != Weak::kNo)
      return Inferred{{}, std::max(ta.weak, tb.weak)};
    if (ta.weak != Weak::kNo) {
      std::swap(a, b);
      std::swap(ta, tb);
    }
    if (tb.weak == Weak::kNo) {
      if (ta.dtype == tb.dtype) return ta;
      if (IsIndex(ta.dtype) || IsIndex(tb.dtype)) {
        const DType other = IsIndex(ta.dtype) ? tb.dtype : ta.dtype;
        return Error(IsIndex(ta.dtype) ? a : b,
                     Concat("an index meets ", DTypeName(other), " here; cast it, as in ",
                            DTypeName(other), "(…)"));
      }
      return Error(at, Concat(DTypeName(ta.dtype), " and ", DTypeName(tb.dtype),
                              " meet here; cast one of them, as in ", DTypeName(ta.dtype), "(…)"));
    }
    if (tb.weak == Weak::kReal && !IsFloat(ta.dtype)) {
      return Error(b, Concat("a number with a fraction meets ", TypeForPeople(ta.dtype), " here"));
    }
    if (IsBool(ta.dtype)) return Error(b, "a number meets bool here");
    Assign(b, ta.dtype);
    return ta;
  }

  absl::StatusOr<Inferred> Infer(const Expr* e, bool wide, bool keep_accumulator = false) {
    switch (e->kind) {
      case ExprKind::kInteger:
        return Inferred{{}, Weak::kInteger};
      case ExprKind::kReal:
        return Inferred{{}, Weak::kReal};
      case ExprKind::kVariable:
        return Record(e, kIndexType);
      case ExprKind::kRead: {
        const DType t = tensor_type_(e->name);
        return Record(e, wide ? WideType(t) : t);
      }
      case ExprKind::kCast:
        return InferCast(e, wide);
      case ExprKind::kReduce:
        return InferReduce(e, wide, keep_accumulator);
      case ExprKind::kOp:
        return InferOp(e, wide);
    }
    QUERN_CHECK(false);
  }

  absl::StatusOr<Inferred> InferCast(const Expr* e, bool wide) {
    const Expr* x = e->args[0];
    absl::StatusOr<Inferred> t = Infer(x, wide, /*keep_accumulator=*/true);
    if (!t.ok()) return t;
    if (t->weak != Weak::kNo) {
      // A literal is born with the type when that loses nothing, else it is converted like any
      // value.
      if (IsFloat(e->dtype)) {
        Assign(x, e->dtype);
      } else {
        Assign(x, t->weak == Weak::kInteger ? kI64Type : kF64Type);
      }
    }
    return Record(e, wide ? WideType(e->dtype) : e->dtype);
  }

  absl::StatusOr<Inferred> InferReduce(const Expr* e, bool wide, bool keep_accumulator) {
    const Expr* body = e->args[0];
    const bool widens = e->op == Op::kAdd || e->op == Op::kMul;
    absl::StatusOr<Inferred> narrow = Infer(body, wide);
    if (!narrow.ok()) return narrow;
    DType result = Settle(body, *narrow);
    if (IsIndex(result)) return Error(body, "a reduction over an index; cast it, as in i32(…)");
    if (!widens) {
      types_.accumulator[e] = result;
      return Record(e, result);
    }
    if (!wide) {
      // The same body again, now computed in the wide type; this is what stays recorded.
      absl::StatusOr<Inferred> again = Infer(body, /*wide=*/true);
      if (!again.ok()) return again;
      Settle(body, *again);
    }
    DType accumulator = WideType(result);
    if (IsBool(result)) accumulator = kI32Type;  // Counting.
    types_.accumulator[e] = accumulator;
    // f16 goes back to f16; i8 stays i32, because a sum that wraps at 8 bits is of no use.
    if (!IsFloat(result) || wide || keep_accumulator) result = accumulator;
    return Record(e, result);
  }

  absl::StatusOr<Inferred> InferOp(const Expr* e, bool wide) {
    std::vector<Inferred> args;
    for (const Expr* a : e->args) {
      absl::StatusOr<Inferred> t = Infer(a, wide);
      if (!t.ok()) return t;
      args.push_back(*t);
    }
    Inferred t = args.back();
    if (e->op == Op::kWhere && (args[0].weak != Weak::kNo || !IsBool(args[0].dtype))) {
      return Error(e->args[0], "the condition of `where` is a comparison or another bool");
    }
    if (e->args.size() >= 2) {
      const size_t first = e->args.size() - 2;
      absl::StatusOr<Inferred> both =
          Unify(e, e->args[first], args[first], e->args[first + 1], args[first + 1]);
      if (!both.ok()) return both;
      t = *both;
    }
    if (GetOpInfo(e->op).comparison) {
      if (t.weak != Weak::kNo) {
        for (const Expr* a : e->args) Assign(a, t.weak == Weak::kInteger ? kI64Type : kF64Type);
      }
      return Record(e, kBoolType);
    }
    if (absl::Status s = CheckOperands(e, t); !s.ok()) return s;
    if (t.weak != Weak::kNo) {
      if (NeedsFloat(e->op)) t.weak = Weak::kReal;
      return t;
    }
    return Record(e, t.dtype);
  }

  absl::Status CheckOperands(const Expr* e, const Inferred& t) const {
    if (t.weak == Weak::kReal && (e->op == Op::kFloorDiv || e->op == Op::kFloorMod ||
                                  e->op == Op::kAnd || e->op == Op::kOr || e->op == Op::kNot)) {
      return Error(e, Concat("`", OpName(e->op), "` needs integers"));
    }
    if (t.weak != Weak::kNo) return absl::OkStatus();
    const DType d = t.dtype;
    const auto refuse = [&](std::string_view advice) {
      return Error(e, Concat("`", OpName(e->op), "` of ", TypeForPeople(d), advice));
    };
    if (NeedsFloat(e->op)) {
      if (IsFloat(d)) return absl::OkStatus();
      return refuse(e->op == Op::kDiv ? "; write `//` to divide integers, or cast, as in f32(…)"
                                      : "; cast it, as in f32(…)");
    }
    switch (e->op) {
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kNeg:
      case Op::kAbs:
        if (IsBool(d)) return refuse("; use `&`, `|` and `!`, or cast it, as in i32(…)");
        return absl::OkStatus();
      case Op::kFloorDiv:
      case Op::kFloorMod:
        if (!IsInteger(d) && !IsIndex(d)) return refuse("; it needs integers (use floor(a/b))");
        return absl::OkStatus();
      case Op::kAnd:
      case Op::kOr:
      case Op::kNot:
        if (!IsInteger(d) && !IsBool(d)) return refuse("; it needs bool or integers");
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  // Integer literals must be values of the type that they came to have.
  absl::Status CheckLiterals(const Expr* e) const {
    if (e->kind == ExprKind::kInteger) {
      const DType t = types_.type.at(e);
      if (IsInteger(t) && WrapInteger(t.scalar, e->integer) != e->integer) {
        return Error(e, Concat(e->integer, " is not a value of ", DTypeName(t)));
      }
      if (t == DType(ScalarType::kU64) && e->integer < 0) {
        return Error(e, Concat(e->integer, " is not a value of u64"));
      }
      return absl::OkStatus();
    }
    if (e->kind == ExprKind::kRead) return absl::OkStatus();  // Indices are checked elsewhere.
    for (const Expr* a : e->args) {
      if (absl::Status s = CheckLiterals(a); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  const Formula& formula_;
  const std::function<DType(const std::string&)>& tensor_type_;
  ExprTypes& types_;
};

}  // namespace

DType WideType(DType t) {
  switch (t.scalar) {
    case ScalarType::kF16:
    case ScalarType::kBF16:
      return kF32Type;
    case ScalarType::kI8:
    case ScalarType::kI16:
      return kI32Type;
    case ScalarType::kU8:
    case ScalarType::kU16:
      return ScalarType::kU32;
    default:
      return t;
  }
}

absl::StatusOr<DType> InferTypes(const Formula& formula, const Expr* value,
                                 const std::function<DType(const std::string&)>& tensor_type,
                                 ExprTypes& types) {
  return Inference(formula, tensor_type, types).Root(value);
}

}  // namespace quern::notation
