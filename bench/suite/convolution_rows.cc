// Convolutions: those of ResNet-50, and one or two of each other kind.

#include "bench/suite/workload.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

Convolution Square(int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride,
                   int64_t pad) {
  const ConvolutionAxis axis{
      .in = size, .kernel = kernel, .stride = stride, .pad = pad, .dilation = 1};
  Convolution c;
  c.in = in;
  c.out = out;
  c.axes = {axis, axis};
  return c;
}

std::string NameOf(const Convolution& c) {
  const ConvolutionAxis& axis = c.axes[0];
  std::string name = Concat(c.transposed ? "deconv " : "conv ", axis.kernel, "x", axis.kernel);
  if (axis.stride > 1) Append(name, " s", axis.stride);
  if (axis.dilation > 1) Append(name, " d", axis.dilation);
  if (c.depthwise()) {
    Append(name, " depthwise ", c.in);
  } else {
    Append(name, " ", c.in, ">", c.out);
    if (c.groups > 1) Append(name, " groups ", c.groups);
  }
  Append(name, " ", axis.in, "^", c.axes.size());
  if (c.batch > 1) Append(name, " batch ", c.batch);
  if (c.channels_last) Append(name, " nhwc");
  return name;
}

}  // namespace

Workload ConvolutionRow(std::string name, const Convolution& shape) {
  ConvolutionText text = TextOf(shape);
  Workload w;
  w.name = std::move(name);
  w.kind = WorkloadKind::kConvolution;
  w.convolution = shape;
  w.formula = std::move(text.formula);
  w.sizes = std::move(text.sizes);
  w.shapes = std::move(text.shapes);
  w.weights = "W";
  w.always_packed = true;
  w.output = "Y";
  w.output_elements = OutputLayout(shape).elements();
  w.flops = FlopsOf(shape);
  w.bytes = 4 * static_cast<double>(InputLayout(shape).elements() + WeightLayout(shape).elements() +
                                    w.output_elements);
  return w;
}

void AddConvolutions(std::vector<Workload>& list) {
  const auto add = [&](const Convolution& c) { list.push_back(ConvolutionRow(NameOf(c), c)); };
  add(Square(3, 64, 224, 7, 2, 3));
  const Convolution first = Square(64, 64, 56, 3, 1, 1);
  add(first);
  add(Square(128, 128, 28, 3, 1, 1));
  add(Square(256, 256, 14, 3, 1, 1));
  add(Square(512, 512, 7, 3, 1, 1));
  add(Square(128, 128, 56, 3, 2, 1));
  const std::vector<Convolution> pointwise = {
      Square(64, 256, 56, 1, 1, 0), Square(256, 64, 56, 1, 1, 0), Square(256, 512, 56, 1, 2, 0),
      Square(512, 2048, 7, 1, 1, 0)};
  for (const Convolution& c : pointwise) add(c);
  for (Convolution c : pointwise) {
    c.batch = 16;
    add(c);
  }
  Convolution c = first;
  c.batch = 16;
  add(c);
  for (c = first, c.channels_last = true; c.batch <= 16; c.batch *= 16) add(c);
  for (Convolution last : pointwise) {
    last.channels_last = true;
    add(last);
  }

  for (const auto& [channels, size] : {std::pair{64, 112}, {512, 14}}) {
    c = Square(channels, channels, size, 3, 1, 1);
    c.groups = channels;
    add(c);
  }
  c.channels_last = true;
  add(c);
  c = Square(64, 64, 56, 3, 1, 2);
  for (ConvolutionAxis& axis : c.axes) axis.dilation = 2;
  add(c);
  c = Square(128, 128, 28, 3, 1, 1);
  c.groups = 4;
  add(c);
  // The second layer of DCGAN's generator.
  c = Square(256, 128, 8, 4, 2, 1);
  c.transposed = true;
  add(c);
}

}  // namespace quern
