#include "optimizer/cpu_traits.h"

#include <string_view>

namespace quern {
namespace {

struct NamedTraits {
  std::string_view llvm_cpu;
  CpuTraits traits;
};

constexpr NamedTraits kTraits[] = {
    {"znver4", {.rows_beside_each_other = false, .fast_bf16 = true}},
    {"znver5", {.rows_beside_each_other = true, .fast_bf16 = true}},
};

}  // namespace

CpuTraits TraitsOf(const Target& target) {
  for (const NamedTraits& named : kTraits) {
    if (named.llvm_cpu == target.llvm_cpu) return named.traits;
  }
  return {};
}

}  // namespace quern
