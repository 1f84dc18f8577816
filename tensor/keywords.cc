#include "tensor/keywords.h"

namespace quern::notation {
namespace {

constexpr FunctionRow kFunctions[] = {
    {"exp", Op::kExp, 1, 1},     {"exp2", Op::kExp2, 1, 1}, {"log", Op::kLog, 1, 1},
    {"log2", Op::kLog2, 1, 1},   {"sqrt", Op::kSqrt, 1, 1}, {"sin", Op::kSin, 1, 1},
    {"tanh", Op::kTanh, 1, 1},   {"erf", Op::kErf, 1, 1},   {"abs", Op::kAbs, 1, 1},
    {"floor", Op::kFloor, 1, 1}, {"max", Op::kMax, 2, 16},  {"min", Op::kMin, 2, 16},
    {"where", Op::kWhere, 3, 3},
};

constexpr ReductionRow kReductions[] = {
    {"sum", Op::kAdd}, {"prod", Op::kMul}, {"max", Op::kMax}, {"min", Op::kMin}};

constexpr BinaryRow kBinary[] = {
    {"|", 0, Op::kOr, false},        {"&", 1, Op::kAnd, false},      {"<", 2, Op::kLt, false},
    {"<=", 2, Op::kLe, false},       {">", 2, Op::kLt, true},        {">=", 2, Op::kLe, true},
    {"==", 2, Op::kEq, false},       {"!=", 2, Op::kNe, false},      {"+", 3, Op::kAdd, false},
    {"-", 3, Op::kSub, false},       {"*", 4, Op::kMul, false},      {"/", 4, Op::kDiv, false},
    {"//", 4, Op::kFloorDiv, false}, {"%", 4, Op::kFloorMod, false},
};

}  // namespace

std::span<const FunctionRow> Functions() { return kFunctions; }
std::span<const ReductionRow> Reductions() { return kReductions; }
std::span<const BinaryRow> BinaryOperators() { return kBinary; }

std::optional<DType> CastType(std::string_view name) {
  const std::optional<DType> t = ParseDType(name);
  if (!t || t->lanes != 1 || !(IsFloat(*t) || IsInteger(*t) || IsBool(*t))) return std::nullopt;
  return t;
}

bool IsReserved(std::string_view name) {
  for (const FunctionRow& f : kFunctions) {
    if (f.name == name) return true;
  }
  for (const ReductionRow& r : kReductions) {
    if (r.name == name) return true;
  }
  return name == "pad" || name == "inf" || name == "nan" || CastType(name).has_value();
}

}  // namespace quern::notation
