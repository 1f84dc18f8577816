#ifndef QUERN_REWRITE_UOP_H_
#define QUERN_REWRITE_UOP_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <span>

#include "rewrite/check.h"
#include "rewrite/dtype.h"
#include "rewrite/op.h"

namespace quern {

/// A content hash that is the same in every process (it may key a cache on disk).
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  std::strong_ordering operator<=>(const Hash128&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Hash128& x) {
    return H::combine(std::move(h), x.high, x.low);
  }
};

/// The argument of a node: two integers whose meaning depends on the op (op.h). Ops without an
/// argument have {0, 0}.
struct Arg {
  int64_t a = 0;
  int64_t b = 0;
  bool operator==(const Arg&) const = default;
};

/// An immutable node. Nodes are made by UOpGraph only; inside one graph equal content is one node,
/// so equality is pointer equality. All members are plain data: nothing is computed lazily.
struct UOp {
  Op op;
  uint8_t source_count_small;  ///< min(source count, 255), to reject patterns early
  DType dtype;
  uint32_t id;  ///< dense inside its graph; sources have smaller ids
  uint32_t source_count;
  uint64_t child_mask;  ///< OpBit of every direct source
  Hash128 hash;
  Arg arg;
  const UOp* const* sources;

  std::span<const UOp* const> src() const { return {sources, source_count}; }
  const UOp* src(size_t i) const {
    QUERN_CHECK(i < source_count);
    return sources[i];
  }

  // --- Readers of the argument. Each checks the op. ---
  bool IsConst() const { return op == Op::kConst; }
  int64_t IntValue() const {
    QUERN_CHECK(op == Op::kConst && !IsFloat(dtype));
    return arg.a;
  }
  double FloatValue() const {
    QUERN_CHECK(op == Op::kConst && IsFloat(dtype));
    return std::bit_cast<double>(arg.a);
  }
  int64_t slot() const {
    QUERN_CHECK(IsBuffer(op));
    return arg.a;
  }
  /// Elements of a buffer.
  int64_t buffer_size() const {
    QUERN_CHECK(IsBuffer(op));
    return arg.b;
  }
  int64_t range_size() const {
    QUERN_CHECK(op == Op::kRange);
    return arg.a;
  }
  /// The place of the loop in the nest: loops run from the smallest axis number (outermost) to the
  /// largest. Two ranges of one kernel never share a number.
  int range_axis() const {
    QUERN_CHECK(op == Op::kRange);
    return static_cast<int>(arg.b >> 8);
  }
  AxisType range_type() const {
    QUERN_CHECK(op == Op::kRange);
    return static_cast<AxisType>(arg.b & 0xff);
  }
  /// The combining operation of kReduce, kScan, kHorizontal and kPrefix: kAdd, kMul, kMax or kMin.
  Op reduce_op() const {
    QUERN_CHECK(op == Op::kReduce || op == Op::kScan || op == Op::kHorizontal || op == Op::kPrefix);
    return static_cast<Op>(arg.a);
  }
};

/// The second argument of kScan and kPrefix: which places count, any of these together.
inline constexpr int64_t kScanExclusive = 1;  ///< not the place itself
inline constexpr int64_t kScanReverse = 2;    ///< those behind it instead of those before it

/// The argument of a kRange.
inline Arg RangeArg(int64_t size, int axis, AxisType type) {
  return {size, (static_cast<int64_t>(axis) << 8) | static_cast<int64_t>(type)};
}

}  // namespace quern

#endif  // QUERN_REWRITE_UOP_H_
