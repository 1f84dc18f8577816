#ifndef QUERN_REWRITE_OP_H_
#define QUERN_REWRITE_OP_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace quern {

/// Every operation of the IR. What each means is stated in docs/semantics.md; how many sources it
/// takes and how it is spelled stands in the table of op.cc.
enum class Op : uint8_t {
  // Leaves.
  kConst,     ///< arg.value: bits of an integer, or of a double for float types
  kParam,     ///< a buffer of the caller; dtype is the element type; arg: slot, elements
  kScratch,   ///< a private buffer in memory; arg: slot, elements
  kRegister,  ///< a private buffer that becomes registers; arg: slot, elements
  kRange,     ///< a loop variable 0..size-1 (Index); arg: see RangeArg
  kLanes,     ///< the vector 0,1,…,lanes-1 (Index)
  // Memory.
  kIndex,  ///< (buffer, offset[, gate]): one element, or one per lane
  kLoad,   ///< (index[, ahead]): its value; 0 where the gate is false, without touching memory;
           ///< arg.a: elements to fetch ahead; ahead: an offset in the buffer to be fetched, too;
           ///< arg.b: loads that are equal but for it are not shared
  kStore,  ///< (index, value): nothing happens where the gate is false
  // Loops.
  kReduce,  ///< (value, range…): combines value over the ranges; arg.a is the combining Op
  kStage,   ///< (value, range…): value, kept in fast memory over the ranges
  kScan,    ///< (value, range…): value combined over the places up to this one; arg: Op, flags
  // Arithmetic.
  kAdd,
  kSub,
  kMul,
  kDiv,       ///< float division
  kFloorDiv,  ///< integer division rounding to minus infinity
  kFloorMod,  ///< the remainder of kFloorDiv: sign of the divisor
  kTruncDiv,  ///< integer division rounding to zero
  kTruncMod,  ///< the remainder of kTruncDiv: sign of the dividend
  kMax,
  kMin,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,  ///< arithmetic for signed types, logical for unsigned
  kLt,
  kLe,
  kEq,
  kNe,
  kWhere,   ///< (condition, if_true, if_false)
  kMulAdd,  ///< (a, b, c): a·b + c, rounded once or twice
  kNeg,
  kAbs,
  kNot,  ///< logical for bool, bitwise for integers
  kFloor,
  kSqrt,
  kExp,
  kExp2,
  kLog,
  kLog2,
  kSin,
  kTanh,
  kErf,
  kCast,     ///< value conversion
  kBitcast,  ///< same bits, other type
  // Vectors.
  kBroadcast,   ///< (scalar): the same value in every lane
  kHorizontal,  ///< (vector): all lanes combined by arg.a, giving arg.b lanes (1 = a scalar)
  kPrefix,      ///< (vector): each lane combined with those before it; arg: Op, flags of a scan
  kExtract,     ///< (vector): its lanes from arg.a on, as many as the result has
  kInterleave,  ///< (vector…): lane 0 of each, then lane 1 of each, …; arg.a: groups of so many
  kTile,        ///< (accumulator, a, b): matrices of arg.b rows; arg.a: instruction
  kMatrix,      ///< (accumulator, a, b): lane l gains Σ_i a[l·g+i]·b[l·g+i]; arg.a: instruction
  // Statements (dtype void).
  kLoop,   ///< (range, statement…): the statements for each value of the range
  kBlock,  ///< (statement…): in order
  kGuard,  ///< (condition): where it is false, what follows in the loop around it does nothing
  kPhase,  ///< (statement…): a part of a kernel that ends before the next one begins
  kSink,   ///< (store…) in a kernel AST; (phase…) once lowered
};
inline constexpr int kOpCount = static_cast<int>(Op::kSink) + 1;
static_assert(kOpCount <= 64, "child masks are 64 bits wide");

/// Name ("add", "floordiv", …), number of sources, and class of an operation.
struct OpInfo {
  std::string_view name;
  int8_t min_sources;
  int8_t max_sources;  ///< -1: any number
  bool elementwise;    ///< pure, computed lane by lane from its sources
  bool commutative;
  bool comparison;  ///< the result is bool
  bool statement;
};

const OpInfo& GetOpInfo(Op op);
inline std::string_view OpName(Op op) { return GetOpInfo(op).name; }
std::optional<Op> ParseOp(std::string_view name);

inline uint64_t OpBit(Op op) { return uint64_t{1} << static_cast<int>(op); }
inline bool IsElementwise(Op op) { return GetOpInfo(op).elementwise; }
inline bool IsBuffer(Op op) {
  return op == Op::kParam || op == Op::kScratch || op == Op::kRegister;
}

/// What a loop is for; the names are those of the actions.
enum class AxisType : uint8_t {
  kLoop,         ///< an output loop
  kGlobal,       ///< GPU grid
  kThread,       ///< CPU threads
  kLocal,        ///< inside a cache tile; GPU block
  kWarp,         ///< the axis that a matrix instruction sums; lanes of one on a GPU
  kGroupTop,     ///< blocks of a reduction cut at the top
  kGroupReduce,  ///< partial accumulators of a two-stage reduction, in registers on a CPU
  kReduce,
  kUpcast,  ///< output loop in registers
  kUnroll,  ///< reduce loop in registers
  kLane,    ///< the register axis that lowering has chosen for the SIMD lanes
};
inline constexpr int kAxisTypeCount = 11;
std::string_view AxisTypeName(AxisType type);
std::optional<AxisType> ParseAxisType(std::string_view name);

/// Register axes become SIMD lanes or unrolled copies and are never loops.
inline bool IsRegisterAxis(AxisType t) {
  return t == AxisType::kUpcast || t == AxisType::kUnroll || t == AxisType::kGroupReduce ||
         t == AxisType::kLane || t == AxisType::kWarp;
}
/// Axes that belong to a reduction, as actions count them.
inline bool IsReduceAxis(AxisType t) {
  return t == AxisType::kReduce || t == AxisType::kUnroll || t == AxisType::kGroupReduce ||
         t == AxisType::kGroupTop || t == AxisType::kWarp;
}

}  // namespace quern

#endif  // QUERN_REWRITE_OP_H_
