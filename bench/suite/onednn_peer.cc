#include "bench/suite/peer.h"

#ifdef QUERN_BENCH_ONEDNN

#include <dlfcn.h>

#include "bench/suite/onednn_session.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

using dnnl::memory;
using Type = memory::data_type;

std::function<void()> Rows(const std::shared_ptr<OneDnnSession>& session, const Workload& w,
                           const Buffers& buffers) {
  using enum WorkloadKind;
  if (w.kind != kSoftmax && w.kind != kLayerNorm && w.kind != kTranspose) return {};
  const dnnl::engine& engine = session->engine;
  const memory::desc plain({w.m, w.n}, Type::f32, memory::format_tag::ab);
  const memory x(plain, engine, buffers.Get<void>("X"));
  const memory y(plain, engine, buffers.Get<void>("Y"));
  if (w.kind == kSoftmax) {
    const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, plain, 1);
    return OneDnnCall(
        session, {{dnnl::softmax_forward({desc, engine}), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}}});
  }
  if (w.kind == kLayerNorm) {
    using dnnl::normalization_flags;
    const dnnl::layer_normalization_forward::desc desc(
        dnnl::prop_kind::forward_inference, plain, 0.00001f,
        normalization_flags::use_scale | normalization_flags::use_shift);
    const memory::desc columns({w.n}, Type::f32, memory::format_tag::a);
    return OneDnnCall(session,
                      {{dnnl::layer_normalization_forward({desc, engine}),
                        {{DNNL_ARG_SRC, x},
                         {DNNL_ARG_DST, y},
                         {DNNL_ARG_SCALE, memory(columns, engine, buffers.Get<void>("g"))},
                         {DNNL_ARG_SHIFT, memory(columns, engine, buffers.Get<void>("b"))}}}});
  }
  const memory::desc turned({w.m, w.n}, Type::f32, memory::format_tag::ba);
  const memory to(turned, engine, buffers.Get<void>("Y"));
  return OneDnnCall(session, {OneDnnReorder(x, to)});
}

}  // namespace

std::function<void()> OneDnnCall(const std::shared_ptr<OneDnnSession>& session,
                                 std::vector<OneDnnStep> steps) {
  return [session, steps = std::move(steps)] {
    for (const OneDnnStep& step : steps) step.primitive.execute(session->stream, step.arguments);
    session->stream.wait();
  };
}

OneDnnStep OneDnnReorder(memory from, memory to) {
  return {dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

memory OneDnnReordered(OneDnnSession& session, memory from, const memory::desc& to) {
  memory reordered(to, session.engine);
  const OneDnnStep step = OneDnnReorder(from, reordered);
  step.primitive.execute(session.stream, step.arguments);
  session.stream.wait();
  return reordered;
}

Peer OneDnnPeer() {
  Peer peer;
  peer.name = "oneDNN";
  const dnnl_version_t* version = dnnl_version();
  peer.details = Concat("version ", version->major, ".", version->minor, ".", version->patch);
  peer.found = true;
  peer.set_threads = [](int threads) {
    // The library brings its OpenMP runtime along; without one it has a single thread anyway.
    using Function = void (*)(int);
    const auto set = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set != nullptr) set(threads);
  };
  const auto session = std::make_shared<OneDnnSession>();
  peer.bind = [session](const Workload& w, const Buffers& buffers, int threads) {
    try {
      switch (w.kind) {
        case WorkloadKind::kGemm:
          return OneDnnProduct(session, w, buffers);
        case WorkloadKind::kConvolution:
          return OneDnnConvolution(session, w, buffers);
        case WorkloadKind::kAttention:
          return OneDnnAttention(session, w, buffers);
        default:
          return Peer::Single("oneDNN", Rows(session, w, buffers));
      }
    } catch (const dnnl::error&) {
      return std::vector<PeerCall>();  // It has no such operation on this processor.
    }
  };
  return peer;
}

}  // namespace quern

#else

namespace quern {

Peer OneDnnPeer() {
  Peer peer;
  peer.name = "oneDNN";
  peer.details = "not found when this program was configured";
  return peer;
}

}  // namespace quern

#endif
