// oneDNN's convolutions. It computes in layouts of its own, so that the price of reordering to them
// is part of what a caller with plain tensors waits for, unless the whole program keeps to them.

#ifdef QUERN_BENCH_ONEDNN

#include <string_view>

#include "bench/suite/onednn_session.h"

namespace quern {
namespace {

using dnnl::memory;
using Dims = memory::dims;

memory::desc DescOf(const TensorLayout& layout) {
  return memory::desc(layout.sizes, memory::data_type::f32, layout.strides);
}

memory::desc WeightDesc(const Convolution& c) {
  TensorLayout layout = WeightLayout(c);
  if (c.groups == 1) return DescOf(layout);
  // The groups are an axis of their own there.
  const int64_t out = c.out / c.groups;
  layout.sizes[0] = out;
  layout.sizes.insert(layout.sizes.begin(), c.groups);
  layout.strides.insert(layout.strides.begin(), out * layout.strides[0]);
  return DescOf(layout);
}

memory::desc AnyLayout(const memory::desc& desc) {
  return memory::desc(desc.dims(), memory::data_type::f32, memory::format_tag::any);
}

// A convolution in the layouts that it asks for.
struct Compiled {
  dnnl::primitive primitive;
  memory::desc x, w, y;
  bool is_reference = false;  ///< plain loops, for shapes that nothing better takes
};

template <typename Forward>
Compiled Compile(const OneDnnSession& session, const Convolution& c, dnnl::algorithm algorithm,
                 const memory::desc& x, const memory::desc& w, const memory::desc& y) {
  Dims strides, dilations, pads;
  for (const ConvolutionAxis& axis : c.axes) {
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation - 1);
    pads.push_back(axis.pad);
  }
  const typename Forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, x, w, y, strides,
                                    dilations, pads, pads);
  const typename Forward::primitive_desc made(desc, session.engine);
  return {.primitive = Forward(made),
          .x = made.src_desc(),
          .w = made.weights_desc(),
          .y = made.dst_desc(),
          .is_reference = std::string_view(made.impl_info_str()).starts_with("ref")};
}

Compiled Compile(const OneDnnSession& session, const Convolution& c, const memory::desc& x,
                 const memory::desc& w, const memory::desc& y) {
  if (c.transposed) {
    return Compile<dnnl::deconvolution_forward>(session, c, dnnl::algorithm::deconvolution_direct,
                                                x, w, y);
  }
  return Compile<dnnl::convolution_forward>(session, c, dnnl::algorithm::convolution_direct, x, w,
                                            y);
}

}  // namespace

std::vector<PeerCall> OneDnnConvolution(const std::shared_ptr<OneDnnSession>& session,
                                        const Workload& workload, const Buffers& buffers) {
  const Convolution& c = workload.convolution;
  const dnnl::engine& engine = session->engine;
  const auto data = std::make_shared<ConvolutionData>(workload, buffers);
  const memory::desc plain_x = DescOf(InputLayout(c)), plain_y = DescOf(OutputLayout(c));
  const memory::desc plain_w = WeightDesc(c);
  const memory x(plain_x, engine, const_cast<float*>(data->x));
  const memory w(plain_w, engine, const_cast<float*>(data->w));
  const memory y(plain_y, engine, data->y);
  const char* layout = c.channels_last ? "oneDNN nhwc" : "oneDNN nchw";

  std::vector<PeerCall> calls;
  const auto step_of = [&](const Compiled& compiled, const memory& from, const memory& to) {
    return OneDnnStep{compiled.primitive,
                      {{DNNL_ARG_SRC, from},
                       {DNNL_ARG_WEIGHTS, OneDnnReordered(*session, w, compiled.w)},
                       {DNNL_ARG_DST, to}}};
  };
  const Compiled own =
      Compile(*session, c, AnyLayout(plain_x), AnyLayout(plain_w), AnyLayout(plain_y));
  const bool other_x = own.x != plain_x, other_y = own.y != plain_y;
  const memory own_x = other_x ? OneDnnReordered(*session, x, own.x) : x;
  const memory own_y = other_y ? memory(own.y, engine) : y;
  const OneDnnStep compute = step_of(own, own_x, own_y);
  if (!own.is_reference) {
    std::vector<OneDnnStep> steps;
    if (other_x) steps.push_back(OneDnnReorder(x, own_x));
    steps.push_back(compute);
    if (other_y) steps.push_back(OneDnnReorder(own_y, y));
    calls.push_back({.name = layout, .call = OneDnnCall(session, steps), .finish = {}});
    if (other_x || other_y) {
      calls.push_back(
          {.name = "oneDNN own",
           .footing = Footing::kOwnLayout,
           .call = OneDnnCall(session, {compute}),
           .finish = other_y ? OneDnnCall(session, {OneDnnReorder(own_y, y)}) : nullptr});
    }
  }
  if (!other_x && !other_y) return calls;
  // Where it has code for the plain layouts, that may be better than to reorder.
  const Compiled direct = Compile(*session, c, plain_x, AnyLayout(plain_w), plain_y);
  if (!direct.is_reference) {
    calls.push_back({.name = "oneDNN direct",
                     .call = OneDnnCall(session, {step_of(direct, x, y)}),
                     .finish = {}});
  }
  return calls;
}

}  // namespace quern

#endif
