#ifndef QUERN_CODEGEN_MASKED_LOADS_H_
#define QUERN_CODEGEN_MASKED_LOADS_H_

namespace llvm {
class Function;
}  // namespace llvm

namespace quern {

/// Cuts masked loads of 32 and 64 bits into registers of `vector_bytes`: registers whose lanes are
/// all off are zero, those whose lanes are all on are plain loads. For cores without mask
/// registers, where LLVM 22 cuts them wrongly:
///
///     <32 x float> masked(p, splat(c) & <1,1,1,1,1,0,…>)  reads lanes 8 to 15 whatever c is
///
/// There a mask is the sign of each lane. Lanes 8 to 15 become <1,1,…>, whose signs are off, and
/// that constant is then taken for a mask that is on (docs/decisions.md).
void CutMaskedLoads(llvm::Function& f, int vector_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_MASKED_LOADS_H_
