// OpenBLAS and BLIS through their CBLAS interface. No header of theirs is needed: the few functions
// are declared here and looked up in the libraries.

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "bench/suite/peer.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                       float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                       float* c, int ldc);
using Sgemv = void (*)(int order, int transpose, int rows, int columns, float alpha, const float* a,
                       int lda, const float* x, int step_x, float beta, float* y, int step_y);

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

std::function<void()> BindBlas(Sgemm sgemm, Sgemv sgemv, const Workload& w,
                               const Buffers& buffers) {
  if (!w.is_product() || w.dtype != "f32") return {};
  const float* a = buffers.Get("A");
  const float* b = buffers.Get("B");
  float* c = buffers.Get("C");
  const int m = static_cast<int>(w.m), n = static_cast<int>(w.n), k = static_cast<int>(w.k);
  // Whoever has a vector calls the function for it.
  if (m == 1) {
    return [=] { sgemv(kRowMajor, kTranspose, k, n, 1, b, n, a, 1, 0, c, 1); };
  }
  if (n == 1) {
    return [=] { sgemv(kRowMajor, kNoTranspose, m, k, 1, a, k, b, 1, 0, c, 1); };
  }
  const int lda = w.transposed_a ? m : k, ldb = w.transposed_b ? k : n;
  const int ta = w.transposed_a ? kTranspose : kNoTranspose;
  const int tb = w.transposed_b ? kTranspose : kNoTranspose;
  const int64_t batch = w.batch, step_a = w.m * w.k, step_b = w.k * w.n, step_c = w.m * w.n;
  return [=] {
    for (int64_t i = 0; i < batch; ++i) {
      sgemm(kRowMajor, ta, tb, m, n, k, 1, a + i * step_a, lda, b + i * step_b, ldb, 0,
            c + i * step_c, n);
    }
  };
}

// Opens the library and fills in what both have in common.
void* Open(Peer& peer, const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    peer.details = Concat("no ", file);
    return nullptr;
  }
  const auto sgemm = Find<Sgemm>(library, "cblas_sgemm");
  const auto sgemv = Find<Sgemv>(library, "cblas_sgemv");
  if (sgemm == nullptr || sgemv == nullptr) {
    peer.details = Concat(file, " has no CBLAS interface");
    return nullptr;
  }
  peer.bind = [=, name = peer.name](const Workload& w, const Buffers& buffers, int threads) {
    return Peer::Single(name, BindBlas(sgemm, sgemv, w, buffers));
  };
  return library;
}

bool HasAvx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

bool HasAvx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

// A core type of OpenBLAS that uses the vectors of this machine, if `detected`, its own choice,
// does not: it takes processors that are newer than itself for ones of 2004.
const char* BetterCoreType(std::string_view detected) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, detected) != names.end();
  };
  if (HasAvx512() && !is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"})) return "SkylakeX";
  if (HasAvx2() && !HasAvx512() && !is_one_of({"Haswell", "Zen", "Excavator"})) return "Haswell";
  return nullptr;
}

// Opens OpenBLAS with the core type that fits the machine. It reads the type when it is loaded.
void* OpenOpenBlas(Peer& peer) {
  constexpr const char* kFile = "libopenblas.so.0";
  unsetenv("OPENBLAS_CORETYPE");
  void* library = Open(peer, kFile);
  if (library == nullptr) return nullptr;
  const auto core = Find<const char* (*)()>(library, "openblas_get_corename");
  const char* better = core == nullptr ? nullptr : BetterCoreType(core());
  if (better == nullptr) return library;
  setenv("OPENBLAS_CORETYPE", better, 1);
  dlclose(library);
  return Open(peer, kFile);
}

}  // namespace

Peer OpenBlasPeer() {
  Peer peer;
  peer.name = "OpenBLAS";
  // Read when the library is loaded. Limits of the environment would halve it; its results are
  // checked here. Idle threads that wait actively for long would disturb whoever is timed next.
  unsetenv("OPENBLAS_L2_SIZE");
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
  void* library = OpenOpenBlas(peer);
  if (library == nullptr) return peer;
  const auto set_threads = Find<void (*)(int)>(library, "openblas_set_num_threads");
  const auto core = Find<const char* (*)()>(library, "openblas_get_corename");
  const auto config = Find<const char* (*)()>(library, "openblas_get_config");
  if (set_threads == nullptr || core == nullptr || config == nullptr) {
    peer.details = "libopenblas.so.0 lacks functions of its own";
    return peer;
  }
  peer.set_threads = set_threads;
  peer.details = Concat("core ", core(), ", ", config());
  peer.found = true;
  return peer;
}

Peer BlisPeer() {
  Peer peer;
  peer.name = "BLIS";
  void* library = Open(peer, "libblis.so.4");
  if (library == nullptr) return peer;
  const auto set_threads = Find<void (*)(int64_t)>(library, "bli_thread_set_num_threads");
  const auto initialise = Find<void (*)()>(library, "bli_init");
  const auto arch = Find<int (*)()>(library, "bli_arch_query_id");
  const auto arch_name = Find<const char* (*)(int)>(library, "bli_arch_string");
  const auto version = Find<const char* (*)()>(library, "bli_info_get_version_str");
  if (set_threads == nullptr || initialise == nullptr || arch == nullptr || arch_name == nullptr ||
      version == nullptr) {
    peer.details = "libblis.so.4 lacks functions of its own";
    return peer;
  }
  // 0.9 takes processors that it does not know for generic ones. Its 0 is "skx", with AVX-512; to
  // other versions the number may be one that they abort for.
  if (HasAvx512() && std::string_view(version()).starts_with("0.9")) {
    setenv("BLIS_ARCH_TYPE", "0", 0);
  }
  initialise();
  peer.set_threads = [=](int threads) { set_threads(threads); };
  peer.details = Concat("version ", version(), ", architecture ", arch_name(arch()));
  peer.found = true;
  return peer;
}

}  // namespace quern
