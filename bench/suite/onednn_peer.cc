#include "bench/suite/peer.h"

#if __has_include(<dnnl.hpp>) && defined(QUERN_BENCH_ONEDNN)

#include <dlfcn.h>

#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "rewrite/concat.h"

namespace quern {
namespace {

using dnnl::memory;
using Type = memory::data_type;

struct Session {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// The call, with everything that it needs kept alive.
std::function<void()> Call(const std::shared_ptr<Session>& session,
                           const dnnl::primitive& primitive,
                           std::unordered_map<int, memory> arguments) {
  return [=] {
    dnnl::stream stream = session->stream;
    primitive.execute(stream, arguments);
    stream.wait();
  };
}

std::function<void()> Product(const std::shared_ptr<Session>& session, const Workload& w,
                              const Buffers& buffers) {
  const Type ta = w.dtype == "f32" ? Type::f32 : w.dtype == "bf16" ? Type::bf16 : Type::u8;
  const Type tb = w.dtype == "u8s8" ? Type::s8 : ta;
  const Type tc = w.dtype == "u8s8" ? Type::s32 : Type::f32;
  const auto matrix = [&](Type type, int64_t rows, int64_t columns, bool transposed) {
    memory::dims sizes{rows, columns};
    memory::dims strides{transposed ? 1 : columns, transposed ? rows : 1};
    if (w.batch > 1) {
      sizes.insert(sizes.begin(), w.batch);
      strides.insert(strides.begin(), rows * columns);
    }
    return memory::desc(sizes, type, strides);
  };
  const memory::desc a = matrix(ta, w.m, w.k, w.transposed_a);
  const memory::desc b = matrix(tb, w.k, w.n, w.transposed_b);
  const memory::desc c = matrix(tc, w.m, w.n, false);
  const dnnl::matmul::primitive_desc primitive(dnnl::matmul::desc(a, b, c), session->engine);
  return Call(session, dnnl::matmul(primitive),
              {{DNNL_ARG_SRC, memory(a, session->engine, buffers.Get<void>("A"))},
               {DNNL_ARG_WEIGHTS, memory(b, session->engine, buffers.Get<void>("B"))},
               {DNNL_ARG_DST, memory(c, session->engine, buffers.Get<void>("C"))}});
}

std::function<void()> Rows(const std::shared_ptr<Session>& session, const Workload& w,
                           const Buffers& buffers) {
  if (w.output() != "Y" || w.kind == WorkloadKind::kMulAdd) return {};
  const dnnl::engine& engine = session->engine;
  const memory::desc plain({w.m, w.n}, Type::f32, memory::format_tag::ab);
  const memory x(plain, engine, buffers.Get<void>("X"));
  const memory y(plain, engine, buffers.Get<void>("Y"));
  if (w.kind == WorkloadKind::kSoftmax) {
    const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, plain, 1);
    return Call(session, dnnl::softmax_forward({desc, engine}),
                {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  }
  if (w.kind == WorkloadKind::kLayerNorm) {
    using dnnl::normalization_flags;
    const dnnl::layer_normalization_forward::desc desc(
        dnnl::prop_kind::forward_inference, plain, 0.00001f,
        normalization_flags::use_scale | normalization_flags::use_shift);
    const memory::desc columns({w.n}, Type::f32, memory::format_tag::a);
    return Call(session, dnnl::layer_normalization_forward({desc, engine}),
                {{DNNL_ARG_SRC, x},
                 {DNNL_ARG_DST, y},
                 {DNNL_ARG_SCALE, memory(columns, engine, buffers.Get<void>("g"))},
                 {DNNL_ARG_SHIFT, memory(columns, engine, buffers.Get<void>("b"))}});
  }
  if (w.kind == WorkloadKind::kTranspose) {
    const memory::desc turned({w.m, w.n}, Type::f32, memory::format_tag::ba);
    const memory to(turned, engine, buffers.Get<void>("Y"));
    return Call(session, dnnl::reorder(x, to), {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, to}});
  }
  return {};
}

}  // namespace

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
  const auto session = std::make_shared<Session>();
  peer.bind = [session](const Workload& w, const Buffers& buffers,
                        int threads) -> std::function<void()> {
    try {
      return w.is_product() ? Product(session, w, buffers) : Rows(session, w, buffers);
    } catch (const dnnl::error&) {
      return {};  // It has no such operation on this processor.
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
