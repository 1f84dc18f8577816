#ifndef QUERN_CODEGEN_MATRIX_INSTRUCTIONS_H_
#define QUERN_CODEGEN_MATRIX_INSTRUCTIONS_H_

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "rewrite/target.h"
#include "rewrite/uop.h"

namespace quern {

/// A dot-product instruction of a CPU: each lane of the accumulator gains the sum of `group`
/// products of neighbouring elements,
///
///     accumulator[l] += Σ_{i < group} a[l·group + i] · b[l·group + i]
///
/// or, of a tile, one on matrices: an accumulator of `tile` rows of lanes gains `tile` such steps,
///
///     accumulator[r][l] += Σ_{s < tile} Σ_{i < group} a[r][s·group + i] · b[s][l·group + i]
///
/// Tiles stand in for the vector instruction with the same group, lanes and types where a loop has
/// enough rows and steps (matrix_tiles.h).
///
/// VPMADDWD has no accumulator: it is followed by an addition.
///
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS, VPDPBUSD,
/// VPMADDWD, TDPBF16PS, TDPBUSD and TDPBSUD. Those of bf16 take subnormal inputs as zero and round
/// to nearest even; those of integers wrap.
struct MatrixInstruction {
  std::string_view name;
  std::string_view feature;  ///< of LLVM's target
  int group;
  int lanes;     ///< of the accumulator, or of one of its rows
  int tile;      ///< rows, and steps at a time; 1: a vector instruction
  ScalarType a;  ///< or an integer type whose values it holds: such factors are widened
  ScalarType b;
  ScalarType accumulator;
};

std::span<const MatrixInstruction> MatrixInstructions();

/// Whether the instruction adds to the accumulator, too; else another one does.
bool Accumulates(const MatrixInstruction& instruction);

/// The instruction on tiles that does what `instruction` does with these types of the factor that
/// has the rows and of that which has the columns, if the target has it; else -1.
int FindTileInstruction(const MatrixInstruction& instruction, ScalarType rows, ScalarType columns,
                        const Target& target);

/// Whether an accumulator of so many lanes is a whole number of registers that can be joined.
bool HasLanes(const MatrixInstruction& instruction, int64_t lanes);

/// Whether the sum of `value` over an axis of matrix instructions is done by them, with `lanes`
/// lanes of accumulators.
bool UsesMatrixInstruction(const UOp* value, int64_t lanes, const Target& target);

/// The two factors of a product that an instruction can sum, `a` and `b` in its order.
struct MatrixFactors {
  int instruction = -1;  ///< index into MatrixInstructions()
  const UOp* a = nullptr;
  const UOp* b = nullptr;
};

/// Reads `value` as the product of two widened operands of one of the instructions that the target
/// has; of several the one that sums the largest groups, in the widest registers. Errors say what
/// is missing: the form, the types, or the CPU's feature.
absl::StatusOr<MatrixFactors> MatchMatrixProduct(const UOp* value, const Target& target);

/// The type in which a REDUCE wants what is loaded from `index` if it is packed: a wider one than
/// it has, if it would be widened for each use, as a factor of a matrix instruction or from a short
/// float to f32; else its own.
ScalarType PackedType(const UOp* reduce, const UOp* index, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_MATRIX_INSTRUCTIONS_H_
