// oneDNN's products, in several ways, and attention by two of them.

#ifdef QUERN_BENCH_ONEDNN

#include <cmath>

#include "bench/suite/onednn_session.h"

namespace quern {
namespace {

using dnnl::memory;
using Type = memory::data_type;

// `batch` matrices, row after row, or column after column if `transposed`.
memory::desc Matrices(Type type, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  memory::dims sizes{rows, columns};
  memory::dims strides{transposed ? 1 : columns, transposed ? rows : 1};
  if (batch > 1) {
    sizes.insert(sizes.begin(), batch);
    strides.insert(strides.begin(), rows * columns);
  }
  return memory::desc(sizes, type, strides);
}

struct Operands {
  memory a, b, c;
};

OneDnnStep Matmul(const dnnl::matmul::primitive_desc& desc, const Operands& o) {
  return {dnnl::matmul(desc), {{DNNL_ARG_SRC, o.a}, {DNNL_ARG_WEIGHTS, o.b}, {DNNL_ARG_DST, o.c}}};
}

// With the tail as operations on each element of the result.
std::function<void()> Fused(const std::shared_ptr<OneDnnSession>& session, const Workload& w,
                            const Buffers& buffers, const Operands& o) {
  dnnl::post_ops after;
  std::unordered_map<int, memory> more;
  if (w.tail == Tail::kRelu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  if (w.tail == Tail::kBiasGelu) after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
  if (w.tail == Tail::kBiasResidual) {
    after.append_binary(dnnl::algorithm::binary_add, o.c.get_desc());
    more[DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1] =
        memory(o.c.get_desc(), session->engine, buffers.Get<void>("R"));
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const bool bias = w.tail != Tail::kRelu;
  const memory::desc row({1, w.n}, Type::f32, memory::format_tag::ab);
  const memory::desc a = o.a.get_desc(), b = o.b.get_desc(), c = o.c.get_desc();
  const dnnl::matmul::desc desc =
      bias ? dnnl::matmul::desc(a, b, row, c) : dnnl::matmul::desc(a, b, c);
  OneDnnStep step = Matmul({desc, attributes, session->engine}, o);
  step.arguments.insert(more.begin(), more.end());
  if (bias) {
    step.arguments[DNNL_ARG_BIAS] = memory(row, session->engine, buffers.Get<void>("b"));
  }
  return OneDnnCall(session, {step});
}

}  // namespace

std::vector<PeerCall> OneDnnProduct(const std::shared_ptr<OneDnnSession>& session,
                                    const Workload& w, const Buffers& buffers) {
  const dnnl::engine& engine = session->engine;
  const Type ta = w.dtype == "f32" ? Type::f32 : w.dtype == "bf16" ? Type::bf16 : Type::u8;
  const Type tb = w.dtype == "u8s8" ? Type::s8 : ta;
  const Type tc = w.dtype == "u8s8" ? Type::s32 : Type::f32;
  const memory::desc a = Matrices(ta, w.batch, w.m, w.k, w.transposed_a);
  const memory::desc b = Matrices(tb, w.batch, w.k, w.n, w.transposed_b);
  const memory::desc c = Matrices(tc, w.batch, w.m, w.n, false);
  const Operands operands{.a = memory(a, engine, buffers.Get<void>("A")),
                          .b = memory(b, engine, buffers.Get<void>("B")),
                          .c = memory(c, engine, buffers.Get<void>("C"))};
  const dnnl::matmul::primitive_desc plain(dnnl::matmul::desc(a, b, c), engine);
  std::vector<PeerCall> calls =
      Peer::Single("oneDNN", OneDnnCall(session, {Matmul(plain, operands)}));

  const memory::desc any(b.dims(), tb, memory::format_tag::any);
  const dnnl::matmul::primitive_desc packed(dnnl::matmul::desc(a, any, c), engine,
                                            /*allow_empty=*/true);
  if (packed && packed.weights_desc() != b) {
    Operands own = operands;
    own.b = OneDnnReordered(*session, operands.b, packed.weights_desc());
    calls.push_back({.name = "oneDNN packed",
                     .footing = Footing::kPacked,
                     .call = OneDnnCall(session, {Matmul(packed, own)}),
                     .finish = {}});
  }
  if (w.tail != Tail::kNone) {
    calls.push_back({.name = "oneDNN fused",
                     .footing = Footing::kFused,
                     .call = Fused(session, w, buffers, operands),
                     .finish = {}});
  }
  return calls;
}

std::vector<PeerCall> OneDnnAttention(const std::shared_ptr<OneDnnSession>& session,
                                      const Workload& w, const Buffers& buffers) {
  const dnnl::engine& engine = session->engine;
  const auto get = [&](const memory::desc& desc, const char* name) {
    return memory(desc, engine, buffers.Get<void>(name));
  };
  const memory::desc vectors = Matrices(Type::f32, w.batch, w.m, w.k, false);
  const memory::desc keys = Matrices(Type::f32, w.batch, w.k, w.n, true);
  const memory::desc values = Matrices(Type::f32, w.batch, w.n, w.k, false);
  const memory::desc scores = Matrices(Type::f32, w.batch, w.m, w.n, false);
  const memory weights(scores, engine);
  dnnl::primitive_attr scaled;
  scaled.set_output_scales(0, {1 / std::sqrt(static_cast<float>(w.k))});
  const dnnl::softmax_forward::desc softmax(dnnl::prop_kind::forward_inference, scores,
                                            w.batch > 1 ? 2 : 1);
  return Peer::Single(
      "oneDNN",
      OneDnnCall(session, {Matmul({dnnl::matmul::desc(vectors, keys, scores), scaled, engine},
                                  {.a = get(vectors, "Q"), .b = get(keys, "K"), .c = weights}),
                           {dnnl::softmax_forward({softmax, engine}),
                            {{DNNL_ARG_SRC, weights}, {DNNL_ARG_DST, weights}}},
                           Matmul({dnnl::matmul::desc(scores, values, vectors), engine},
                                  {.a = weights, .b = get(values, "V"), .c = get(vectors, "O")})}));
}

}  // namespace quern

#endif
