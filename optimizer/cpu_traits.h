#ifndef QUERN_OPTIMIZER_CPU_TRAITS_H_
#define QUERN_OPTIMIZER_CPU_TRAITS_H_

#include "rewrite/target.h"

namespace quern {

/// What the heuristic knows of a core beyond the sizes of its caches and registers: a table by the
/// name that LLVM has for it, of what was measured (docs/decisions.md). Other cores have the
/// defaults. A search does not need it: it measures.
struct CpuTraits {
  /// Whether several rows that are read side by side come faster from memory than one.
  bool rows_beside_each_other = false;
  /// Whether a product of bf16 pairs takes no longer than one of f32.
  bool fast_bf16 = false;
};

CpuTraits TraitsOf(const Target& target);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_CPU_TRAITS_H_
