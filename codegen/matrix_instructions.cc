#include "codegen/matrix_instructions.h"

#include <array>

#include "rewrite/concat.h"

namespace quern {
namespace {

using enum ScalarType;

// name, feature, group, lanes, rows and steps, types
constexpr std::array<MatrixInstruction, 5> kInstructions = {{
    {"vdpbf16ps", "avx512bf16", 2, 16, 1, kBF16, kBF16, kF32},
    {"vpdpbusd", "avx512vnni", 4, 16, 1, kU8, kI8, kI32},
    {"tdpbf16ps", "amx-bf16", 2, 16, 16, kBF16, kBF16, kF32},
    {"tdpbusd", "amx-int8", 4, 16, 16, kU8, kI8, kI32},
    {"tdpbsud", "amx-int8", 4, 16, 16, kI8, kU8, kI32},
}};

// Looks through conversions to wider integers that keep the value.
const UOp* Narrowest(const UOp* x) {
  while (x->op == Op::kCast && IsInteger(x->dtype) && IsInteger(x->src(0)->dtype)) {
    const ScalarType from = x->src(0)->dtype.scalar;
    const ScalarType to = x->dtype.scalar;
    const bool keeps = BitWidth(from) < BitWidth(to) && (IsUnsigned(from) || IsSigned(to));
    if (!keeps) break;
    x = x->src(0);
  }
  return x;
}

}  // namespace

std::span<const MatrixInstruction> MatrixInstructions() { return kInstructions; }

absl::StatusOr<MatrixFactors> MatchMatrixProduct(const UOp* value) {
  if (value->op != Op::kMul || value->src(0)->op != Op::kCast || value->src(1)->op != Op::kCast) {
    return absl::FailedPreconditionError("what is summed is no product of two widened operands");
  }
  const UOp* x = Narrowest(value->src(0)->src(0));
  const UOp* y = Narrowest(value->src(1)->src(0));
  for (size_t i = 0; i < kInstructions.size(); ++i) {
    const MatrixInstruction& m = kInstructions[i];
    if (value->dtype.scalar != m.accumulator || m.tile > 1) continue;
    if (x->dtype.scalar == m.a && y->dtype.scalar == m.b) {
      return MatrixFactors{static_cast<int>(i), x, y};
    }
    if (x->dtype.scalar == m.b && y->dtype.scalar == m.a) {
      return MatrixFactors{static_cast<int>(i), y, x};
    }
  }
  return absl::FailedPreconditionError(Concat("no instruction multiplies ", DTypeName(x->dtype),
                                              " by ", DTypeName(y->dtype), " into ",
                                              DTypeName(value->dtype)));
}

int FindTileInstruction(const MatrixInstruction& instruction, ScalarType rows, ScalarType columns,
                        const Target& target) {
  for (size_t i = 0; i < kInstructions.size(); ++i) {
    const MatrixInstruction& m = kInstructions[i];
    if (m.tile == 1 || m.group != instruction.group || m.lanes != instruction.lanes) continue;
    if (m.a != rows || m.b != columns || m.accumulator != instruction.accumulator) continue;
    if (target.Has(std::string(m.feature))) return static_cast<int>(i);
  }
  return -1;
}

bool HasLanes(const MatrixInstruction& instruction, int64_t lanes) {
  const int64_t registers = lanes / instruction.lanes;
  // They are joined pairwise.
  return lanes % instruction.lanes == 0 && registers > 0 && (registers & (registers - 1)) == 0;
}

bool UsesMatrixInstruction(const UOp* value, int64_t lanes) {
  const absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(value);
  return factors.ok() && HasLanes(kInstructions[factors->instruction], lanes);
}

absl::StatusOr<MatrixFactors> MatchMatrixProduct(const UOp* value, const Target& target) {
  absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(value);
  if (!factors.ok()) return factors;
  const MatrixInstruction& m = kInstructions[factors->instruction];
  if (!target.Has(std::string(m.feature))) {
    return absl::FailedPreconditionError(
        Concat("this CPU lacks ", m.feature, ", which ", m.name, " needs"));
  }
  return factors;
}

}  // namespace quern
