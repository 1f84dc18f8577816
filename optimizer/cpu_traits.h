#ifndef QUERN_OPTIMIZER_CPU_TRAITS_H_
#define QUERN_OPTIMIZER_CPU_TRAITS_H_

#include "rewrite/target.h"

namespace quern {

/// What the heuristic knows of a core beyond the sizes of its caches and registers: a table by the
/// name that LLVM has for it, of what was measured (docs/decisions.md). Other cores have the
/// defaults. A search does not need it: it measures.
struct CpuTraits {
  /// Arithmetic on whole registers that a core does in a second, beside one with two units as wide
  /// as its registers.
  double vector_rate = 1;
  /// Whether several rows that are read side by side come faster from memory than one.
  bool rows_beside_each_other = false;
  /// Whether the outer axis of a window with channels last is better left a loop, beside a tile of
  /// two registers of channels by a few neighbouring pixels.
  bool window_rows_in_turn = true;
  /// Whether the rows of a product that come from beyond the second-level cache are better packed
  /// by blocks, although each of them is a walk through memory.
  bool packs_far_rows = false;
  /// Whether a product of bf16 pairs takes no longer than one of f32.
  bool fast_bf16 = false;
};

CpuTraits TraitsOf(const Target& target);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_CPU_TRAITS_H_
