#include "runtime/cpu_target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/str_join.h"
#include "rewrite/concat.h"
#include "runtime/tile_permission.h"

namespace quern {
namespace {

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

int64_t CacheBytes(int name, int64_t fallback) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

std::string ModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "unknown CPU";
}

}  // namespace

Target DetectCpu() {
  Target target;
  target.kind = TargetKind::kCpu;
  target.name = ModelName();
  target.llvm_triple = llvm::sys::getProcessTriple();
  target.llvm_cpu = llvm::sys::getHostCPUName().str();
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    if (feature.second) target.features.push_back(feature.first().str());
  }
  DropForbiddenTiles(target.features);
  std::sort(target.features.begin(), target.features.end());
  target.cores = UsableCores();
  if (target.Has("avx512f")) {
    target.vector_bytes = 64;
    target.vector_registers = 32;
  } else if (target.Has("avx")) {
    target.vector_bytes = 32;
    target.vector_registers = 16;
  } else if (target.Has("neon")) {
    target.vector_registers = 32;
  }
  target.l1_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = CacheBytes(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

std::string TargetFingerprint(const Target& target) {
  return Concat(target.name, "|", target.llvm_triple, "|", target.llvm_cpu, "|", target.cores, "|",
                target.vector_bytes, "|", target.vector_registers, "|", target.l1_bytes, "|",
                target.l2_bytes, "|", target.l3_bytes, "|", absl::StrJoin(target.features, ","));
}

}  // namespace quern
