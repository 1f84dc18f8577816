#ifndef QUERN_TESTS_FUZZ_RANDOM_KERNEL_H_
#define QUERN_TESTS_FUZZ_RANDOM_KERNEL_H_

#include <vector>

#include "rewrite/build.h"
#include "tests/fuzz/bounded_value.h"
#include "tests/fuzz/random_access.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// A kernel AST that VerifyKernel accepts, and how far its results may be off.
struct RandomKernel {
  const UOp* sink = nullptr;
  std::vector<TestBuffer> buffers;
  /// What the float inputs may hold. Where nothing is rounded, everything; else bounded values, for
  /// which the tolerances of the outputs hold.
  FloatFill fill = FloatFill::kBounded;
};

/// Makes kernels of up to eight axes, some of size 1 and some prime; up to three reductions, nested
/// or side by side; accesses with any order of axes, broadcasts, gaps, negative strides, padding
/// with gates, windows, splits and gathers; all dtypes; in place or not; one store or two.
///
/// Each value carries a bound of its magnitude and of the error that reordering, contraction and
/// the documented ULPs allow, so a tolerance is derived rather than guessed. What jumps
/// (comparisons, floor, casts to integers) is applied to exact values only.
class KernelGenerator {
 public:
  KernelGenerator(UOpGraph& graph, uint64_t seed)
      : g_(graph), random_(seed), access_(graph, random_) {}

  RandomKernel Make() {
    const int axes = static_cast<int>(random_.Between(1, 5));
    reduces_left_ = random_.Chance(20) ? 0 : static_cast<int>(random_.Between(1, 3));
    std::vector<const UOp*> output;
    int64_t work = 1;
    for (int i = 0; i < axes; ++i) {
      // Leave work for the reductions.
      output.push_back(NewRange(&work, reduces_left_ > 0 ? 600 : kMaxWork, AxisType::kLoop));
    }
    std::vector<const UOp*> stores = {MakeStore(output, work)};
    if (random_.Chance(15)) {
      reduces_left_ = 0;
      stores.push_back(MakeStore(output, work));
    }
    kernel_.sink = Sink(g_, stores);
    kernel_.fill = !exact_ ? FloatFill::kBounded : no_nan_ ? FloatFill::kFinite : FloatFill::kAny;
    return kernel_;
  }

 private:
  static constexpr int64_t kMaxWork = 20000;
  static constexpr int kMaxAxes = 8;

  using Ranges = std::vector<const UOp*>;

  const UOp* NewRange(int64_t* work, int64_t limit, AxisType type) {
    static const std::vector<int64_t> kSizes = {1, 1, 2,  3,  4,  4,  5,  6,  7,
                                                8, 8, 11, 13, 16, 17, 24, 32, 33};
    int64_t size = random_.Pick(kSizes);
    if (type == AxisType::kReduce && random_.Chance(2)) size = 0;
    while (size > 1 && *work * size > limit) size /= 2;
    *work *= size;
    return Range(g_, size, next_axis_++, type);
  }

  DType AnyType() {
    static const std::vector<ScalarType> kTypes = {
        ScalarType::kF32, ScalarType::kF32,  ScalarType::kF32, ScalarType::kF32, ScalarType::kF64,
        ScalarType::kF16, ScalarType::kBF16, ScalarType::kI32, ScalarType::kI32, ScalarType::kI8,
        ScalarType::kI16, ScalarType::kI64,  ScalarType::kU8,  ScalarType::kU16, ScalarType::kU32,
        ScalarType::kU64, ScalarType::kBool};
    return random_.Pick(kTypes);
  }

  const UOp* NewParam(DType dtype, int64_t elements, bool stored) {
    const auto slot = static_cast<int64_t>(kernel_.buffers.size());
    kernel_.buffers.push_back(
        {.slot = slot, .dtype = dtype, .elements = elements, .loaded = !stored, .stored = stored});
    return Param(g_, dtype, slot, elements);
  }

  const UOp* MakeStore(const Ranges& output, int64_t work) {
    const DType type = AnyType();
    const Place place = access_.OutputPlace(output);
    const UOp* buffer = NewParam(type, place.elements, true);
    const size_t slot = kernel_.buffers.size() - 1;
    if (random_.Chance(10)) in_place_ = Load(g_, Index(g_, buffer, place.offset, place.gate));
    const BoundedValue value =
        Generate(type, static_cast<int>(random_.Between(1, 4)), output, work);
    in_place_ = nullptr;
    TestBuffer& written = kernel_.buffers[slot];
    // Both the kernel and the interpreter may be off.
    if (!value.exact) written.tolerance = 2 * value.error + 1e-30;
    exact_ &= value.exact;
    return Store(g_, Index(g_, buffer, place.offset, place.gate), value.node);
  }

  BoundedValue Generate(DType t, int depth, const Ranges& ranges, int64_t work) {
    if (in_place_ != nullptr && in_place_->dtype == t && random_.Chance(60)) {
      for (TestBuffer& b : kernel_.buffers) b.loaded |= b.slot == in_place_->src(0)->src(0)->slot();
      return {in_place_, 2, 0, true};
    }
    if (reduces_left_ > 0 && random_.Chance(45)) return MakeReduce(t, depth, ranges, work);
    if (depth <= 0 || random_.Chance(15)) return Leaf(t, ranges);
    BoundedValue v = IsFloat(t)  ? FloatOperation(t, depth - 1, ranges, work)
                     : IsBool(t) ? BoolOperation(depth - 1, ranges, work)
                                 : IntegerOperation(t, depth - 1, ranges, work);
    const double limit = t.scalar == ScalarType::kF16 ? 1000 : 1e6;
    return IsFloat(t) && v.magnitude > limit ? Clamp(g_, v, 8) : v;
  }

  BoundedValue MakeReduce(DType t, int depth, const Ranges& ranges, int64_t work) {
    --reduces_left_;
    Ranges inner = ranges;
    Ranges closed;
    double count = 1;
    const int axes = random_.Chance(30) ? 2 : 1;
    for (int i = 0; i < axes && next_axis_ < kMaxAxes; ++i) {
      closed.push_back(NewRange(&work, kMaxWork, AxisType::kReduce));
      count *= static_cast<double>(closed.back()->range_size());
      inner.push_back(closed.back());
    }
    if (closed.empty()) return Leaf(t, ranges);
    static const std::vector<Op> kOps = {Op::kAdd, Op::kAdd, Op::kAdd,
                                         Op::kMax, Op::kMin, Op::kMul};
    Op op = random_.Pick(kOps);
    if (op == Op::kMul && IsFloat(t) && count > 6) op = Op::kAdd;
    if (count == 0) op = Op::kAdd;  // Infinity and the like would void the bounds.
    BoundedValue v = Generate(t, depth, inner, work);
    BoundedValue r{Reduce(g_, op, v.node, closed), v.magnitude, v.error, v.exact};
    if (!IsFloat(t) || op == Op::kMax || op == Op::kMin) return r;
    if (op == Op::kMul) v = Clamp(g_, v, 2);
    r = {Reduce(g_, op, v.node, closed), 0, 0, false};
    r.magnitude = op == Op::kAdd ? count * v.magnitude : std::pow(v.magnitude + v.error, count);
    const double carried = op == Op::kAdd ? count * v.error : count * v.error * r.magnitude;
    r.error = carried + count * RoundingUnit(t) * (r.magnitude + carried);
    const double limit = t.scalar == ScalarType::kF16 ? 30000 : 1e9;
    return r.magnitude > limit ? Clamp(g_, Leaf(t, ranges), 8) : r;
  }

  BoundedValue Leaf(DType t, const Ranges& ranges) {
    const int64_t kind = random_.Below(10);
    if (kind == 0) return Constant(t);
    if (kind == 1 && !ranges.empty()) {
      const UOp* r = random_.Pick(ranges);
      const UOp* scaled = Mul(g_, r, IndexConst(g_, random_.Between(-3, 3)));
      const UOp* x = Add(g_, scaled, IndexConst(g_, random_.Between(-5, 5)));
      return {Cast(g_, x, t), 150, 0, true};
    }
    if (kind == 2) return Gather(t, ranges);
    const Place place = access_.InputPlace(ranges);
    const UOp* buffer = NewParam(t, place.elements, false);
    return {Load(g_, Index(g_, buffer, place.offset, place.gate)), 2, 0, true};
  }

  BoundedValue Constant(DType t) {
    if (IsFloat(t)) return {FloatConst(g_, t, random_.Uniform(-2, 2)), 2, 0, true};
    return {IntConst(g_, t, random_.Between(-5, 5)), 0, 0, true};
  }

  // x[indices[…]], 0 where the index is outside.
  BoundedValue Gather(DType t, const Ranges& ranges) {
    const Place place = access_.InputPlace(ranges);
    const UOp* indices = NewParam(kI32Type, place.elements, false);
    const int64_t size = random_.Between(1, 40);
    kernel_.buffers.back().least_index = -2;
    kernel_.buffers.back().largest_index = size + 1;
    const UOp* at = Cast(g_, Load(g_, Index(g_, indices, place.offset, place.gate)), kIndexType);
    const UOp* gate =
        And(g_, Binary(g_, Op::kLe, IndexConst(g_, 0), at), Lt(g_, at, IndexConst(g_, size)));
    return {Load(g_, Index(g_, NewParam(t, size, false), at, gate)), 2, 0, true};
  }

  // A value of this type that is exact.
  BoundedValue Exact(DType t, int depth, const Ranges& ranges, int64_t work) {
    const BoundedValue v = Generate(t, depth, ranges, work);
    return v.exact ? v : Leaf(t, ranges);
  }

  BoundedValue BoolOperation(int depth, const Ranges& ranges, int64_t work) {
    static const std::vector<Op> kLogic = {Op::kAnd, Op::kOr,  Op::kXor,
                                           Op::kAdd, Op::kMul, Op::kNot};
    static const std::vector<Op> kCompare = {Op::kLt, Op::kLe, Op::kEq, Op::kNe};
    if (random_.Chance(60)) {
      const DType t = AnyType();
      const BoundedValue a = Exact(t, depth, ranges, work);
      const BoundedValue b = Exact(t, depth - 1, ranges, work);
      return {Binary(g_, random_.Pick(kCompare), a.node, b.node)};
    }
    const Op op = random_.Pick(kLogic);
    const UOp* a = Generate(kBoolType, depth, ranges, work).node;
    if (op == Op::kNot) return {Unary(g_, op, a)};
    return {Binary(g_, op, a, Generate(kBoolType, depth, ranges, work).node)};
  }

  BoundedValue IntegerOperation(DType t, int depth, const Ranges& ranges, int64_t work) {
    static const std::vector<Op> kBinary = {
        Op::kAdd, Op::kSub, Op::kMul, Op::kFloorDiv, Op::kFloorMod, Op::kTruncDiv, Op::kTruncMod,
        Op::kMax, Op::kMin, Op::kAnd, Op::kOr,       Op::kXor,      Op::kShl,      Op::kShr};
    static const std::vector<Op> kUnary = {Op::kNeg, Op::kAbs, Op::kNot};
    switch (random_.Below(8)) {
      case 0: {
        const UOp* a = Generate(t, depth, ranges, work).node;
        return {Unary(g_, random_.Pick(kUnary), a)};
      }
      case 1:
        return Select(t, depth, ranges, work);
      case 2:
        return {Cast(g_, Exact(AnyType(), depth, ranges, work).node, t)};
      case 3:
        if (t == kI32Type) {  // The bits of a NaN are anybody's.
          no_nan_ = true;
          const Place place = access_.InputPlace(ranges);
          const UOp* x = Load(
              g_, Index(g_, NewParam(kF32Type, place.elements, false), place.offset, place.gate));
          return {g_.Make(Op::kBitcast, t, {x})};
        }
        [[fallthrough]];
      default: {
        const UOp* a = Generate(t, depth, ranges, work).node;
        const UOp* b = Generate(t, depth, ranges, work).node;
        return {Binary(g_, random_.Pick(kBinary), a, b)};
      }
    }
  }

  BoundedValue Select(DType t, int depth, const Ranges& ranges, int64_t work) {
    const UOp* condition = Generate(kBoolType, depth - 1, ranges, work).node;
    const BoundedValue a = Generate(t, depth, ranges, work);
    const BoundedValue b = Generate(t, depth, ranges, work);
    return {Where(g_, condition, a.node, b.node), std::max(a.magnitude, b.magnitude),
            std::max(a.error, b.error), a.exact && b.exact};
  }

  BoundedValue FloatOperation(DType t, int depth, const Ranges& ranges, int64_t work) {
    const double u = RoundingUnit(t);
    const auto binary = [&](Op op) {
      const BoundedValue a = Generate(t, depth, ranges, work);
      const BoundedValue b = Generate(t, depth, ranges, work);
      BoundedValue r{Binary(g_, op, a.node, b.node), a.magnitude + b.magnitude, a.error + b.error,
                     false};
      if (op == Op::kMul) {
        r.magnitude = a.magnitude * b.magnitude;
        r.error = a.error * b.magnitude + b.error * a.magnitude + a.error * b.error;
      }
      r.error += u * (r.magnitude + r.error);
      return r;
    };
    switch (random_.Below(14)) {
      case 0:
      case 1:
        return binary(Op::kAdd);
      case 2:
        return binary(Op::kSub);
      case 3:
      case 4:
        return binary(Op::kMul);
      case 5:
      case 6: {
        const BoundedValue a = Generate(t, depth, ranges, work);
        const BoundedValue b = Generate(t, depth, ranges, work);
        return {Binary(g_, random_.Chance(50) ? Op::kMax : Op::kMin, a.node, b.node),
                std::max(a.magnitude, b.magnitude), std::max(a.error, b.error), a.exact && b.exact};
      }
      case 7: {
        BoundedValue a = Generate(t, depth, ranges, work);
        a.node = Unary(g_, random_.Chance(50) ? Op::kNeg : Op::kAbs, a.node);
        return a;
      }
      case 8:
        return Select(t, depth, ranges, work);
      case 9:
        return FloatCast(t, depth, ranges, work);
      case 10: {
        const BoundedValue a = Exact(t, depth, ranges, work);
        return {Unary(g_, Op::kFloor, a.node), a.magnitude + 1, 0, true};
      }
      case 11:
        return Quotient(t, depth, ranges, work);
      default:
        return Transcendental(g_, random_, Clamp(g_, Generate(t, depth, ranges, work), 4));
    }
  }

  BoundedValue FloatCast(DType t, int depth, const Ranges& ranges, int64_t work) {
    const DType from = AnyType();
    if (IsInteger(from) && ByteSize(from.scalar) > 1) {
      // Numbers so large that nothing can be said of their sums are brought into bounds.
      const UOp* x = Generate(from, depth, ranges, work).node;
      const UOp* small = Binary(g_, Op::kFloorMod, x, IntConst(g_, from, 100));
      return {Cast(g_, small, t), 100, 0, true};
    }
    const BoundedValue v = Generate(from, depth, ranges, work);
    if (!IsFloat(from)) return {Cast(g_, v.node, t), 255, 0, true};
    if (t.scalar == ScalarType::kF16 && v.magnitude > 1000) return Leaf(t, ranges);
    return {Cast(g_, v.node, t), v.magnitude,
            v.exact ? 0 : v.error + RoundingUnit(t) * (v.magnitude + v.error), v.exact};
  }

  // a / (|b| + 1), whose denominator is never small.
  BoundedValue Quotient(DType t, int depth, const Ranges& ranges, int64_t work) {
    const BoundedValue a = Generate(t, depth, ranges, work);
    const BoundedValue b = Generate(t, depth, ranges, work);
    const UOp* below = Add(g_, Unary(g_, Op::kAbs, b.node), FloatConst(g_, t, 1));
    const double below_error = b.error + RoundingUnit(t) * (b.magnitude + 1);
    BoundedValue r{Binary(g_, Op::kDiv, a.node, below), a.magnitude, 0, false};
    r.error = a.error + a.magnitude * below_error + 4 * RoundingUnit(t) * (a.magnitude + a.error);
    return r;
  }

  UOpGraph& g_;
  Random random_;
  AccessGenerator access_;
  RandomKernel kernel_;
  int next_axis_ = 0;
  int reduces_left_ = 0;
  bool exact_ = true;
  bool no_nan_ = false;
  const UOp* in_place_ = nullptr;  // the load of the buffer that is being written
};

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_RANDOM_KERNEL_H_
