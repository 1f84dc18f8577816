#include "bench/suite/peer.h"

#ifdef QUERN_BENCH_LIBXSMM

#include <libxsmm.h>

#include "bench/suite/thread_team.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

// Its kernels are for products whose operands stay in the first caches.
constexpr int64_t kLargest = 128;

std::function<void()> BindSmall(const Workload& w, const Buffers& buffers, int threads) {
  const bool small = w.m <= kLargest && w.n <= kLargest && w.k <= kLargest;
  if (!w.is_product() || w.dtype != "f32" || !small || w.transposed_a || w.transposed_b) return {};
  // Columns come first there, so that C is Cᵀ = Bᵀ·Aᵀ.
  const auto m = static_cast<libxsmm_blasint>(w.m);
  const auto n = static_cast<libxsmm_blasint>(w.n);
  const auto k = static_cast<libxsmm_blasint>(w.k);
  const float alpha = 1, beta = 0;
  const libxsmm_smmfunction kernel =
      libxsmm_smmdispatch(n, m, k, &n, &k, &n, &alpha, &beta, nullptr, nullptr);
  if (kernel == nullptr) return {};
  const float* a = buffers.Get("A");
  const float* b = buffers.Get("B");
  float* c = buffers.Get("C");
  if (w.batch == 1) {
    return [=] { kernel(b, a, c); };
  }
  const int64_t step_a = w.m * w.k, step_b = w.k * w.n, step_c = w.m * w.n, batch = w.batch;
  return [=] {
    InParallel(threads, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) kernel(b + i * step_b, a + i * step_a, c + i * step_c);
    });
  };
}

}  // namespace

Peer LibxsmmPeer() {
  libxsmm_init();
  Peer peer;
  peer.name = "libxsmm";
  peer.details = Concat("version ", LIBXSMM_VERSION, ", ", libxsmm_get_target_arch());
  peer.found = true;
  peer.set_threads = [](int) {};
  peer.bind = [name = peer.name](const Workload& w, const Buffers& buffers, int threads) {
    return Peer::Single(name, BindSmall(w, buffers, threads));
  };
  return peer;
}

}  // namespace quern

#else

namespace quern {

Peer LibxsmmPeer() {
  Peer peer;
  peer.name = "libxsmm";
  peer.details = "not found when this program was configured";
  return peer;
}

}  // namespace quern

#endif
