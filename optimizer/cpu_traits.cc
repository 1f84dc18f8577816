#include "optimizer/cpu_traits.h"

#include <string_view>

namespace quern {
namespace {

struct NamedTraits {
  std::string_view llvm_cpu;
  CpuTraits traits;
};

constexpr NamedTraits kTraits[] = {
    {.llvm_cpu = "znver3", .traits = {.packs_far_rows = true}},
    {.llvm_cpu = "znver4",
     .traits = {.vector_rate = 0.5,  // units of 256 bits
                .rows_beside_each_other = false,
                .window_rows_in_turn = true,
                .fast_bf16 = true}},
    {.llvm_cpu = "znver5",
     .traits = {.vector_rate = 1,
                .rows_beside_each_other = true,
                .window_rows_in_turn = false,
                .fast_bf16 = true}},
};

}  // namespace

CpuTraits TraitsOf(const Target& target) {
  for (const NamedTraits& named : kTraits) {
    if (named.llvm_cpu == target.llvm_cpu) return named.traits;
  }
  return {};
}

}  // namespace quern
