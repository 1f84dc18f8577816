#ifndef QUERN_CODEGEN_INVARIANT_DIVISION_H_
#define QUERN_CODEGEN_INVARIANT_DIVISION_H_

#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

namespace quern {

/// Divides f32 vectors by what a loop does not change with one reciprocal ahead of the loop and
/// three fused operations inside it; the quotients are those of the division, bit by bit.
///
///     r = RN(1/y);  q = RN(x·r);  e = q·y − x;  RN(q − e·r) = RN(x/y)
///
/// That holds for all mantissas (tests/unit/invariant_division_test.cc tries all that come near the
/// middle between two floats) as long as e is exact and nothing overflows. Where that is not sure,
/// for tiny x, what is not finite, or y far from 1, a branch leads to the division itself.
class InvariantDivisionPass : public llvm::PassInfoMixin<InvariantDivisionPass> {
 public:
  /// `vector_bytes`: the width of a register.
  InvariantDivisionPass(const llvm::TargetMachine& machine, int vector_bytes)
      : machine_(machine), vector_bytes_(vector_bytes) {}

  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses);

 private:
  const llvm::TargetMachine& machine_;
  int vector_bytes_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_INVARIANT_DIVISION_H_
