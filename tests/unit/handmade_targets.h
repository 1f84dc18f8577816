#ifndef QUERN_TESTS_UNIT_HANDMADE_TARGETS_H_
#define QUERN_TESTS_UNIT_HANDMADE_TARGETS_H_

#include "runtime/cpu_target.h"

namespace quern {

// Targets that are the same on every machine, so that what is expected of a schedule is, too.

inline Target Avx512Target(int cores = 4) {
  Target target;
  target.name = "a CPU with AVX-512";
  target.llvm_triple = "x86_64-pc-linux-gnu";
  target.llvm_cpu = "x86-64-v4";
  target.features = {"avx", "avx2", "avx512f", "fma"};
  target.cores = cores;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  return target;
}

inline Target Avx2Target(int cores = 4) {
  Target target = Avx512Target(cores);
  target.name = "a CPU with AVX2";
  target.llvm_cpu = "x86-64-v3";
  target.features = {"avx", "avx2", "fma"};
  target.vector_bytes = 32;
  target.vector_registers = 16;
  return target;
}

inline Target SseTarget(int cores = 4) {
  Target target = Avx2Target(cores);
  target.name = "a CPU with SSE";
  target.llvm_cpu = "x86-64";
  target.features = {};
  target.vector_bytes = 16;
  return target;
}

/// The machine's own code generator with the widths that another target has: schedules made for
/// `shape` whose code runs here.
inline Target HereWithShapeOf(const Target& shape) {
  Target target = DetectCpu();
  target.cores = shape.cores;
  target.vector_bytes = shape.vector_bytes;
  target.vector_registers = shape.vector_registers;
  target.l1_bytes = shape.l1_bytes;
  target.l2_bytes = shape.l2_bytes;
  target.l3_bytes = shape.l3_bytes;
  return target;
}

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_HANDMADE_TARGETS_H_
