#ifndef QUERN_REWRITE_TARGET_H_
#define QUERN_REWRITE_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quern {

enum class TargetKind : uint8_t { kCpu, kCuda };

/// What a schedule and a code generator need to know about a device. `runtime/` fills it from the
/// machine; tests may fill it by hand.
struct Target {
  TargetKind kind = TargetKind::kCpu;
  std::string name;                   ///< for people: "AMD EPYC 9B45"
  std::string llvm_triple;            ///< "x86_64-pc-linux-gnu"
  std::string llvm_cpu;               ///< "znver5"
  std::vector<std::string> features;  ///< LLVM feature names that are present, sorted: "avx512f"
  int cores = 1;                      ///< threads that a kernel may use
  int vector_bytes = 16;              ///< width of a SIMD register
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10;        ///< data cache of one core
  int64_t l2_bytes = 512 << 10;       ///< of one core
  int64_t l3_bytes = 8 << 20;         ///< shared
  int64_t shared_memory_bytes = 0;    ///< of one GPU block
  int64_t max_threads_per_block = 0;  ///< GPU

  bool Has(const std::string& feature) const {
    for (const std::string& f : features) {
      if (f == feature) return true;
    }
    return false;
  }
};

}  // namespace quern

#endif  // QUERN_REWRITE_TARGET_H_
