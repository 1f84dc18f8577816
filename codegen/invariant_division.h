#ifndef QUERN_CODEGEN_INVARIANT_DIVISION_H_
#define QUERN_CODEGEN_INVARIANT_DIVISION_H_

namespace llvm {
class Function;
class TargetMachine;
template <typename Unit, typename... Extra>
class AnalysisManager;
}  // namespace llvm

namespace quern {

/// Divides f32 vectors by what a loop does not change with one reciprocal ahead of the loop and
/// three fused operations inside it; the quotients are those of the division, bit by bit.
///
///     r = RN(1/y);  q = RN(x·r);  e = q·y − x;  RN(q − e·r) = RN(x/y)
///
/// That holds for all mantissas (tests/unit/invariant_division_test.cc tries those that come near
/// the middle between two floats) as long as e is exact and nothing overflows. Where that is not
/// sure, for tiny x, what is not finite, or y far from 1, a branch leads to the division itself.
///
/// `vector_bytes` is the width of a register. Whether anything was changed: the analyses of `f` are
/// then out of date.
bool DivideByReciprocals(llvm::Function& f, llvm::AnalysisManager<llvm::Function>& analyses,
                         const llvm::TargetMachine& machine, int vector_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_INVARIANT_DIVISION_H_
