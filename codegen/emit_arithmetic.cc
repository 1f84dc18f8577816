#include "codegen/emit_arithmetic.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include <bit>

#include "rewrite/check.h"

namespace quern {
namespace {

using llvm::IRBuilderBase;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

constexpr ID kNoIntrinsic = llvm::Intrinsic::not_intrinsic;

ID FloatIntrinsic(Op op) {
  switch (op) {
    case Op::kAbs:
      return llvm::Intrinsic::fabs;
    case Op::kFloor:
      return llvm::Intrinsic::floor;
    case Op::kSqrt:
      return llvm::Intrinsic::sqrt;
    default:
      return kNoIntrinsic;
  }
}

Value* ConstLike(Value* v, int64_t value) {
  return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(value), /*IsSigned=*/true);
}

// The number that all lanes of `v` are, unless that is not known or is NaN.
const llvm::APFloat* KnownNumber(Value* v) {
  const llvm::APFloat* number = nullptr;
  const bool known = llvm::PatternMatch::match(v, llvm::PatternMatch::m_APFloat(number));
  return known && !number->isNaN() ? number : nullptr;
}

// max(x, y) is x if x is NaN, else x if x > y, else y (docs/semantics.md). x86 has an instruction
// for `a > b ? a : b`, so that form is kept, and it alone is enough where one side is a number.
Value* FloatExtreme(IRBuilderBase& b, bool max, Value* x, Value* y) {
  const auto better = [&](Value* one, Value* other) {
    Value* wins = max ? b.CreateFCmpOGT(one, other) : b.CreateFCmpOLT(one, other);
    return b.CreateSelect(wins, one, other);
  };
  if (KnownNumber(x) != nullptr) return better(x, y);
  if (const llvm::APFloat* number = KnownNumber(y)) {
    if (!number->isZero()) return better(y, x);
    Value* loses = max ? b.CreateFCmpOLE(x, y) : b.CreateFCmpOGE(x, y);
    return b.CreateSelect(loses, y, x);  // Of two zeros y is taken.
  }
  // Selecting x itself here, LLVM would join the two conditions and the instruction would be lost.
  Value* nan = llvm::ConstantFP::getNaN(x->getType());
  return b.CreateSelect(b.CreateFCmpUNO(x, x), nan, better(x, y));
}

// Quotient or remainder with the corner cases of docs/semantics.md. LLVM leaves division by zero
// and the overflow of INT_MIN / -1 undefined, so neither reaches the instruction.
Value* IntegerDivision(IRBuilderBase& b, Op op, bool is_signed, bool nonnegative, Value* x,
                       Value* y) {
  const bool quotient = op == Op::kFloorDiv || op == Op::kTruncDiv;
  const bool floor = op == Op::kFloorDiv || op == Op::kFloorMod;
  Value* zero = ConstLike(x, 0);
  Value* one = ConstLike(x, 1);
  Value* is_zero = b.CreateICmpEQ(y, zero);
  Value* divisor = b.CreateSelect(is_zero, one, y);
  if (!is_signed || nonnegative) {
    if (quotient) return b.CreateSelect(is_zero, zero, b.CreateUDiv(x, divisor));
    return b.CreateSelect(is_zero, x, b.CreateURem(x, divisor));
  }
  Value* is_minus_one = b.CreateICmpEQ(y, ConstLike(x, -1));
  divisor = b.CreateSelect(is_minus_one, one, divisor);
  Value* q = b.CreateSDiv(x, divisor);
  Value* r = b.CreateSub(x, b.CreateMul(q, divisor));
  if (floor) {
    Value* differs = b.CreateICmpSLT(b.CreateXor(r, divisor), zero);
    Value* adjust = b.CreateAnd(b.CreateICmpNE(r, zero), differs);
    q = b.CreateSub(q, b.CreateZExt(adjust, q->getType()));
    r = b.CreateAdd(r, b.CreateSelect(adjust, divisor, zero));
  }
  if (quotient) {
    q = b.CreateSelect(is_minus_one, b.CreateNeg(x), q);
    return b.CreateSelect(is_zero, zero, q);
  }
  r = b.CreateSelect(is_minus_one, zero, r);
  return b.CreateSelect(is_zero, x, r);
}

Value* Shift(IRBuilderBase& b, Op op, bool is_signed, Value* x, Value* amount) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  amount = b.CreateAnd(amount, ConstLike(amount, width - 1));
  if (op == Op::kShl) return b.CreateShl(x, amount);
  return is_signed ? b.CreateAShr(x, amount) : b.CreateLShr(x, amount);
}

Value* Compare(IRBuilderBase& b, Op op, DType dtype, Value* x, Value* y) {
  if (IsFloat(dtype)) {
    switch (op) {
      case Op::kLt:
        return b.CreateFCmpOLT(x, y);
      case Op::kLe:
        return b.CreateFCmpOLE(x, y);
      case Op::kEq:
        return b.CreateFCmpOEQ(x, y);
      default:
        return b.CreateFCmpUNE(x, y);
    }
  }
  const bool is_signed = IsSigned(dtype.scalar) || IsIndex(dtype);
  switch (op) {
    case Op::kLt:
      return is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
    case Op::kLe:
      return is_signed ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
    case Op::kEq:
      return b.CreateICmpEQ(x, y);
    default:
      return b.CreateICmpNE(x, y);
  }
}

// f32 → bf16: round to nearest even on the integer; the hardware instruction would flush
// subnormals.
Value* FloatToBFloat(IRBuilderBase& b, Value* x) {
  Type* i32 = x->getType()->getWithNewType(b.getInt32Ty());
  Value* bits = b.CreateBitCast(x, i32);
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), ConstLike(bits, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(bits, ConstLike(bits, 0x7fff)), odd);
  Value* quiet = b.CreateOr(bits, ConstLike(bits, 0x400000));
  Value* result = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(result, 16), i32->getWithNewType(b.getInt16Ty()));
}

Value* BFloatToFloat(IRBuilderBase& b, Value* x) {
  Type* i32 = x->getType()->getWithNewType(b.getInt32Ty());
  Value* bits = b.CreateShl(b.CreateZExt(x, i32), 16);
  return b.CreateBitCast(bits, x->getType()->getWithNewType(b.getFloatTy()));
}

// 16-bit floats convert by way of f32: that is their meaning (docs/semantics.md), rules may have
// joined the two steps, and LLVM's own conversions of half to small integers lose NaN.
Value* Convert(IRBuilderBase& b, DType from, DType to, Value* x) {
  const DType f32 = kF32Type.WithLanes(from.lanes);
  const auto is_short = [](DType t) {
    return t.scalar == ScalarType::kF16 || t.scalar == ScalarType::kBF16;
  };
  if (from.scalar != ScalarType::kF32 && to.scalar != ScalarType::kF32 &&
      (is_short(from) || is_short(to))) {
    return Convert(b, f32, to, Convert(b, from, f32, x));
  }
  if (from.scalar == ScalarType::kBF16) return BFloatToFloat(b, x);
  if (to.scalar == ScalarType::kBF16) return FloatToBFloat(b, x);
  Type* type = LlvmType(b.getContext(), to);
  const bool from_signed = IsSigned(from.scalar) || IsIndex(from);
  if (IsBool(to)) {
    if (IsFloat(from)) return b.CreateFCmpUNE(x, llvm::ConstantFP::getZero(x->getType()));
    return b.CreateICmpNE(x, ConstLike(x, 0));
  }
  if (IsFloat(from) && IsFloat(to)) return b.CreateFPCast(x, type);
  if (IsFloat(to)) return from_signed ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  if (IsFloat(from)) {
    const bool to_signed = IsSigned(to.scalar) || IsIndex(to);
    return b.CreateIntrinsic(to_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                             {type, x->getType()}, {x});
  }
  return from_signed ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

Value* EmitBool(IRBuilderBase& b, Op op, Value* x, Value* y) {
  switch (op) {
    case Op::kAdd:
    case Op::kOr:
    case Op::kMax:
      return b.CreateOr(x, y);
    case Op::kMul:
    case Op::kAnd:
    case Op::kMin:
      return b.CreateAnd(x, y);
    case Op::kXor:
    case Op::kSub:
    case Op::kNe:
      return b.CreateXor(x, y);
    case Op::kEq:
      return b.CreateNot(b.CreateXor(x, y));
    case Op::kLt:
      return b.CreateAnd(b.CreateNot(x), y);
    case Op::kLe:
      return b.CreateOr(b.CreateNot(x), y);
    default:
      QUERN_CHECK_MSG(false, "an operation that bool does not have");
      return nullptr;
  }
}

Value* EmitFloat(IRBuilderBase& b, const UOp* u, std::span<Value* const> s) {
  switch (u->op) {
    case Op::kAdd:
      return b.CreateFAdd(s[0], s[1]);
    case Op::kSub:
      return b.CreateFSub(s[0], s[1]);
    case Op::kMul:
      return b.CreateFMul(s[0], s[1]);
    case Op::kDiv:
      return b.CreateFDiv(s[0], s[1]);
    case Op::kMax:
    case Op::kMin:
      return FloatExtreme(b, u->op == Op::kMax, s[0], s[1]);
    case Op::kNeg:
      return b.CreateFNeg(s[0]);
    case Op::kMulAdd:
      return b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {s[0]->getType()}, {s[0], s[1], s[2]});
    default: {
      const ID id = FloatIntrinsic(u->op);
      QUERN_CHECK_MSG(id != kNoIntrinsic, OpName(u->op).data());
      return b.CreateUnaryIntrinsic(id, s[0]);
    }
  }
}

Value* EmitInteger(IRBuilderBase& b, const UOp* u, std::span<Value* const> s, bool nonnegative) {
  const bool is_signed = IsSigned(u->dtype.scalar) || IsIndex(u->dtype);
  switch (u->op) {
    case Op::kAdd:
      return b.CreateAdd(s[0], s[1]);
    case Op::kSub:
      return b.CreateSub(s[0], s[1]);
    case Op::kMul:
      return b.CreateMul(s[0], s[1]);
    case Op::kMulAdd:
      return b.CreateAdd(b.CreateMul(s[0], s[1]), s[2]);
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kTruncDiv:
    case Op::kTruncMod:
      return IntegerDivision(b, u->op, is_signed, nonnegative, s[0], s[1]);
    case Op::kMax:
    case Op::kMin: {
      const bool max = u->op == Op::kMax;
      const ID id = is_signed ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                              : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
      return b.CreateBinaryIntrinsic(id, s[0], s[1]);
    }
    case Op::kAnd:
      return b.CreateAnd(s[0], s[1]);
    case Op::kOr:
      return b.CreateOr(s[0], s[1]);
    case Op::kXor:
      return b.CreateXor(s[0], s[1]);
    case Op::kShl:
    case Op::kShr:
      return Shift(b, u->op, is_signed, s[0], s[1]);
    case Op::kNeg:
      return b.CreateNeg(s[0]);
    case Op::kNot:
      return b.CreateNot(s[0]);
    case Op::kAbs:
      if (!is_signed) return s[0];
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, s[0], b.getFalse());
    case Op::kFloor:
      return s[0];
    default:
      QUERN_CHECK_MSG(false, OpName(u->op).data());
      return nullptr;
  }
}

bool FitsInt32(const UOp* u, BoundsAnalysis& bounds) {
  return !IsIndex(u->dtype) || bounds.Of(u).Within(INT32_MIN, INT32_MAX);
}

}  // namespace

Type* LlvmType(llvm::LLVMContext& context, DType dtype, unsigned index_bits) {
  Type* scalar = nullptr;
  switch (dtype.scalar) {
    case ScalarType::kBool:
      scalar = Type::getInt1Ty(context);
      break;
    case ScalarType::kF16:
      scalar = Type::getHalfTy(context);
      break;
    case ScalarType::kF32:
      scalar = Type::getFloatTy(context);
      break;
    case ScalarType::kF64:
      scalar = Type::getDoubleTy(context);
      break;
    case ScalarType::kIndex:
      scalar = Type::getIntNTy(context, index_bits);
      break;
    default:
      scalar = Type::getIntNTy(context, static_cast<unsigned>(BitWidth(dtype.scalar)));
  }
  if (dtype.lanes == 1) return scalar;
  return llvm::FixedVectorType::get(scalar, dtype.lanes);
}

Type* LlvmMemoryType(llvm::LLVMContext& context, DType dtype) {
  if (dtype.scalar == ScalarType::kBool) return LlvmType(context, kI8Type.WithLanes(dtype.lanes));
  return LlvmType(context, dtype);
}

Value* EmitConst(IRBuilderBase& builder, const UOp* u) {
  Type* type = LlvmType(builder.getContext(), u->dtype);
  if (u->dtype.scalar == ScalarType::kBF16) {
    return llvm::ConstantInt::get(type, FloatToBFloatBits(static_cast<float>(u->FloatValue())));
  }
  if (IsFloat(u->dtype)) return llvm::ConstantFP::get(type, u->FloatValue());
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(u->IntValue()), /*IsSigned=*/true,
                                /*ImplicitTrunc=*/true);
}

Value* EmitElementwise(IRBuilderBase& builder, const UOp* u, std::span<Value* const> sources,
                       bool nonnegative) {
  switch (u->op) {
    case Op::kWhere:
      return builder.CreateSelect(sources[0], sources[1], sources[2]);
    case Op::kCast:
      return Convert(builder, u->src(0)->dtype, u->dtype, sources[0]);
    case Op::kBitcast:
      return builder.CreateBitCast(sources[0], LlvmType(builder.getContext(), u->dtype));
    default:
      break;
  }
  const DType dtype = u->src(0)->dtype;
  if (IsBool(dtype)) {
    if (u->op == Op::kNot) return builder.CreateNot(sources[0]);
    if (sources.size() == 1) return sources[0];  // neg, abs, floor of a bool
    return EmitBool(builder, u->op, sources[0], sources[1]);
  }
  if (GetOpInfo(u->op).comparison) {
    return Compare(builder, u->op, dtype, sources[0], sources[1]);
  }
  if (IsFloat(dtype)) return EmitFloat(builder, u, sources);
  return EmitInteger(builder, u, sources, nonnegative);
}

Value* EmitLanes(IRBuilderBase& b, int lanes) {
  llvm::SmallVector<llvm::Constant*, 64> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(b.getInt32(static_cast<uint32_t>(i)));
  return llvm::ConstantVector::get(numbers);
}

Value* EmitCombine(IRBuilderBase& b, Op op, DType dtype, Value* x, Value* y) {
  if (IsBool(dtype)) return EmitBool(b, op, x, y);
  if (IsFloat(dtype)) {
    if (op == Op::kAdd) return b.CreateFAdd(x, y);
    if (op == Op::kMul) return b.CreateFMul(x, y);
    return FloatExtreme(b, op == Op::kMax, x, y);
  }
  if (op == Op::kAdd) return b.CreateAdd(x, y);
  if (op == Op::kMul) return b.CreateMul(x, y);
  const bool is_signed = IsSigned(dtype.scalar) || IsIndex(dtype);
  const bool max = op == Op::kMax;
  const ID id = is_signed ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                          : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return b.CreateBinaryIntrinsic(id, x, y);
}

Value* EmitHorizontal(IRBuilderBase& b, Op op, DType dtype, Value* vector) {
  // LLVM 22 makes VPDPBUSD of a sum of byte products that is folded by halves, and forgets to add
  // that instruction's own lanes (docs/decisions.md).
  if (op == Op::kAdd && IsInteger(dtype)) return b.CreateAddReduce(vector);
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  while (lanes % 2 == 0) {  // Fold the upper half onto the lower one.
    const unsigned half = lanes / 2;
    llvm::SmallVector<int, 64> low;
    llvm::SmallVector<int, 64> high;
    for (unsigned i = 0; i < half; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + half));
    }
    vector = EmitCombine(b, op, dtype, b.CreateShuffleVector(vector, low),
                         b.CreateShuffleVector(vector, high));
    lanes = half;
  }
  Value* result = b.CreateExtractElement(vector, uint64_t{0});
  for (unsigned i = 1; i < lanes; ++i) {
    result = EmitCombine(b, op, dtype, result, b.CreateExtractElement(vector, i));
  }
  return result;
}

Value* EmitBounded(IRBuilderBase& b, const UOp* u, std::vector<Value*> sources,
                   BoundsAnalysis& bounds) {
  bool nonnegative = false;
  if (u->source_count == 2 && !IsFloat(u->src(0)->dtype)) {
    nonnegative = bounds.Of(u->src(0)).min >= 0 && bounds.Of(u->src(1)).min >= 0;
  }
  unsigned bits = 64;
  bool index = false;
  const bool vector = u->src(0)->dtype.lanes != 1 || u->dtype.lanes != 1;
  if (vector) {
    bits = FitsInt32(u, bounds) ? 32 : 64;
    for (const UOp* s : u->src()) {
      if (IsIndex(s->dtype) && !FitsInt32(s, bounds)) bits = 64;
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!IsIndex(u->src(i)->dtype)) continue;
    index = true;
    sources[i] = b.CreateSExtOrTrunc(sources[i], sources[i]->getType()->getWithNewBitWidth(bits));
  }
  Value* value = EmitElementwise(b, u, sources, nonnegative);
  if (IsIndex(u->dtype) && !index) {  // A cast to Index.
    value = b.CreateSExtOrTrunc(value, value->getType()->getWithNewBitWidth(bits));
  }
  return value;
}

}  // namespace quern
