#include "codegen/matrix_instructions.h"

#include <algorithm>
#include <array>

#include "rewrite/concat.h"
#include "rewrite/graph.h"

namespace quern {
namespace {

using enum ScalarType;

// name, feature, group, lanes, rows and steps, types
constexpr std::array<MatrixInstruction, 8> kInstructions = {{
    {"vdpbf16ps", "avx512bf16", 2, 16, 1, kBF16, kBF16, kF32},
    {"vpdpbusd", "avx512vnni", 4, 16, 1, kU8, kI8, kI32},
    {"vpdpbusd", "avxvnni", 4, 8, 1, kU8, kI8, kI32},
    {"vpmaddwd", "avx512bw", 2, 16, 1, kI16, kI16, kI32},
    {"vpmaddwd", "avx2", 2, 8, 1, kI16, kI16, kI32},
    {"tdpbf16ps", "amx-bf16", 2, 16, 16, kBF16, kBF16, kF32},
    {"tdpbusd", "amx-int8", 4, 16, 16, kU8, kI8, kI32},
    {"tdpbsud", "amx-int8", 4, 16, 16, kI8, kU8, kI32},
}};

// Whether `to` is `from`, or a wider integer type that has all its values.
bool Holds(ScalarType to, ScalarType from) {
  if (to == from) return true;
  if (!IsInteger(to) || !IsInteger(from)) return false;
  return BitWidth(from) < BitWidth(to) && (IsUnsigned(from) || IsSigned(to));
}

// Looks through conversions to wider integers that keep the value.
const UOp* Narrowest(const UOp* x) {
  while (x->op == Op::kCast && IsInteger(x->dtype) &&
         Holds(x->dtype.scalar, x->src(0)->dtype.scalar)) {
    x = x->src(0);
  }
  return x;
}

// The features name registers, too, but a target may have fewer bytes in use.
bool HasInstruction(const MatrixInstruction& m, const Target& target) {
  return target.Has(std::string(m.feature)) &&
         m.lanes * ByteSize(m.accumulator) <= target.vector_bytes;
}

}  // namespace

std::span<const MatrixInstruction> MatrixInstructions() { return kInstructions; }

bool Accumulates(const MatrixInstruction& instruction) { return instruction.a != kI16; }

absl::StatusOr<MatrixFactors> MatchMatrixProduct(const UOp* value, const Target& target) {
  if (value->op != Op::kMul || value->src(0)->op != Op::kCast || value->src(1)->op != Op::kCast) {
    return absl::FailedPreconditionError("what is summed is no product of two widened operands");
  }
  const UOp* x = Narrowest(value->src(0)->src(0));
  const UOp* y = Narrowest(value->src(1)->src(0));
  const MatrixInstruction* missing = nullptr;
  for (size_t i = 0; i < kInstructions.size(); ++i) {
    const MatrixInstruction& m = kInstructions[i];
    if (value->dtype.scalar != m.accumulator || m.tile > 1) continue;
    const bool as_they_are = Holds(m.a, x->dtype.scalar) && Holds(m.b, y->dtype.scalar);
    const bool swapped = Holds(m.a, y->dtype.scalar) && Holds(m.b, x->dtype.scalar);
    if (!as_they_are && !swapped) continue;
    if (HasInstruction(m, target)) {
      return MatrixFactors{static_cast<int>(i), as_they_are ? x : y, as_they_are ? y : x};
    }
    if (missing == nullptr) missing = &m;
  }
  if (missing != nullptr) {
    return absl::FailedPreconditionError(
        Concat("this CPU lacks ", missing->feature, ", which ", missing->name, " needs"));
  }
  return absl::FailedPreconditionError(Concat("no instruction multiplies ", DTypeName(x->dtype),
                                              " by ", DTypeName(y->dtype), " into ",
                                              DTypeName(value->dtype)));
}

ScalarType PackedType(const UOp* reduce, const UOp* index, const Target& target) {
  const ScalarType own = index->dtype.scalar;
  const auto is_loaded = [&](const UOp* u) { return u->op == Op::kLoad && u->src(0) == index; };
  const std::span<const UOp* const> axes = reduce->src().subspan(1);
  const bool summed = std::any_of(axes.begin(), axes.end(),
                                  [](const UOp* r) { return r->range_type() == AxisType::kWarp; });
  if (!summed) {
    if (own != kF16 && own != kBF16) return own;
    for (const UOp* u : Toposort(reduce->src(0))) {
      if (u->op == Op::kCast && u->dtype.scalar == kF32 && is_loaded(u->src(0))) return kF32;
    }
    return own;
  }
  const absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(reduce->src(0), target);
  if (!factors.ok()) return own;
  const MatrixInstruction& m = kInstructions[static_cast<size_t>(factors->instruction)];
  return is_loaded(factors->a) ? m.a : is_loaded(factors->b) ? m.b : own;
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

bool UsesMatrixInstruction(const UOp* value, int64_t lanes, const Target& target) {
  const absl::StatusOr<MatrixFactors> factors = MatchMatrixProduct(value, target);
  return factors.ok() && HasLanes(kInstructions[factors->instruction], lanes);
}

}  // namespace quern
