#include "bench/suite/convolution.h"

#include <string_view>

#include "rewrite/concat.h"

namespace quern {
namespace {

// `order` has the dimensions from the outermost in memory to the innermost.
TensorLayout Dense(std::vector<int64_t> sizes, const std::vector<size_t>& order) {
  TensorLayout layout{.sizes = std::move(sizes), .strides = {}};
  layout.strides.resize(layout.sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    layout.strides[order[i]] = stride;
    stride *= layout.sizes[order[i]];
  }
  return layout;
}

// The axes are dimensions 2 and up; `before` and `after` are those around them.
std::vector<size_t> Around(std::vector<size_t> before, size_t axes,
                           const std::vector<size_t>& after) {
  for (size_t a = 0; a < axes; ++a) before.push_back(2 + a);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

TensorLayout ImageLayout(const Convolution& c, std::vector<int64_t> sizes) {
  const size_t axes = c.axes.size();
  return Dense(std::move(sizes),
               c.channels_last ? Around({0}, axes, {1}) : Around({0, 1}, axes, {}));
}

// Collects the indices of one tensor, and its shape.
struct Reference {
  std::string indices, shape;

  void Add(std::string_view index, int64_t size) {
    Append(indices, indices.empty() ? "" : ",", index);
    Append(shape, shape.empty() ? "" : ",", size);
  }
};

struct Variable {
  std::string name;
  int64_t size = 1;
};

std::string Scaled(int64_t factor, std::string_view name) {
  return factor == 1 ? std::string(name) : Concat(factor, "*", name);
}

std::string Plus(int64_t number) {
  return number == 0 ? "" : number > 0 ? Concat("+", number) : Concat(number);
}

// What one axis adds to the formula.
struct AxisText {
  std::vector<Variable> output;  ///< variables of the output's axis
  Variable kernel;               ///< name is empty if there is nothing to sum over
  std::string read;              ///< index into the input
  std::string weight;
};

AxisText TextOf(const Convolution& c, const ConvolutionAxis& axis, size_t place) {
  // The last axis is w, whatever the number.
  const size_t name = 3 - c.axes.size() + place;
  const std::string out(1, "thw"[name]), kernel(1, "rpq"[name]), phase(1, "xuv"[name]);
  const int64_t size = OutputSize(c, axis);
  if (c.transposed) {
    // Output stride·h + u takes the kernel's elements (u + pad) mod stride + stride·p, each from
    // the input element that this puts there.
    const std::string shifted = axis.pad == 0 ? phase : Concat("(", phase, "+", axis.pad, ")");
    return {.output = {{out, size / axis.stride}, {phase, axis.stride}},
            .kernel = {kernel, axis.kernel / axis.stride},
            .read = Concat(out, "+", shifted, "//", axis.stride, "-", kernel),
            .weight = Concat(Scaled(axis.stride, kernel), "+", shifted, "%", axis.stride)};
  }
  AxisText text{
      .output = {{out, size}}, .kernel = {}, .read = Scaled(axis.stride, out), .weight = {}};
  if (axis.kernel > 1) {
    text.kernel = {kernel, axis.kernel};
    text.weight = kernel;
    Append(text.read, "+", Scaled(axis.dilation, kernel));
  }
  Append(text.read, Plus(-axis.pad));
  return text;
}

}  // namespace

int64_t TensorLayout::elements() const {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

int64_t OutputSize(const Convolution& c, const ConvolutionAxis& axis) {
  if (c.transposed) return (axis.in - 1) * axis.stride - 2 * axis.pad + axis.kernel;
  return (axis.in + 2 * axis.pad - axis.dilation * (axis.kernel - 1) - 1) / axis.stride + 1;
}

TensorLayout InputLayout(const Convolution& c) {
  std::vector<int64_t> sizes = {c.batch, c.in};
  for (const ConvolutionAxis& axis : c.axes) sizes.push_back(axis.in);
  return ImageLayout(c, std::move(sizes));
}

TensorLayout OutputLayout(const Convolution& c) {
  std::vector<int64_t> sizes = {c.batch, c.out};
  for (const ConvolutionAxis& axis : c.axes) sizes.push_back(OutputSize(c, axis));
  return ImageLayout(c, std::move(sizes));
}

TensorLayout WeightLayout(const Convolution& c) {
  std::vector<int64_t> sizes = {c.out, c.in / c.groups};
  for (const ConvolutionAxis& axis : c.axes) sizes.push_back(axis.kernel);
  const size_t axes = c.axes.size();
  if (c.channels_last) return Dense(std::move(sizes), Around({}, axes, {1, 0}));
  return Dense(std::move(sizes),
               c.transposed ? Around({1, 0}, axes, {}) : Around({0, 1}, axes, {}));
}

double FlopsOf(const Convolution& c) {
  double flops =
      2.0 * static_cast<double>(OutputLayout(c).elements()) * static_cast<double>(c.in / c.groups);
  for (const ConvolutionAxis& axis : c.axes) {
    flops *= static_cast<double>(axis.kernel);
    if (c.transposed) flops /= static_cast<double>(axis.stride);
  }
  return flops;
}

ConvolutionText TextOf(const Convolution& c) {
  std::vector<Variable> in, out, output, sum, variables = {{"n", c.batch}};
  if (c.depthwise()) {
    in = out = {{"c", c.groups}};
  } else {
    sum = {{"c", c.in / c.groups}};
    if (c.groups > 1) in = out = {{"g", c.groups}};
    in.push_back(sum[0]);
    out.push_back({"o", c.out / c.groups});
  }
  Reference x, y, w;
  const auto add_all = [](Reference& to, const std::vector<Variable>& from) {
    for (const Variable& v : from) to.Add(v.name, v.size);
  };
  // In OIHW the channels of the output come first, with their group; in HWIO last.
  const auto add_weight_channels = [&] {
    if (c.transposed && !c.channels_last) add_all(w, sum);
    if (!c.channels_last) add_all(w, out);
    if (c.channels_last || !c.transposed) add_all(w, sum);
    if (c.channels_last) add_all(w, out);
  };
  x.Add("n", c.batch);
  y.Add("n", c.batch);
  if (!c.channels_last) {
    add_all(x, in);
    add_all(y, out);
    add_weight_channels();
  }
  bool padded = c.transposed;
  std::vector<Variable> kernels;
  for (size_t a = 0; a < c.axes.size(); ++a) {
    const AxisText text = TextOf(c, c.axes[a], a);
    x.Add(text.read, c.axes[a].in);
    add_all(y, text.output);
    output.insert(output.end(), text.output.begin(), text.output.end());
    if (!text.kernel.name.empty()) {
      w.Add(text.weight, c.axes[a].kernel);
      kernels.push_back(text.kernel);
    }
    padded |= c.axes[a].pad > 0;
  }
  if (c.channels_last) {
    add_weight_channels();
    add_all(x, in);
    add_all(y, out);
  }
  variables.insert(variables.end(), out.begin(), out.end());
  variables.insert(variables.end(), output.begin(), output.end());
  sum.insert(sum.end(), kernels.begin(), kernels.end());
  variables.insert(variables.end(), sum.begin(), sum.end());

  ConvolutionText text;
  std::string bound;
  for (const Variable& v : sum) Append(bound, bound.empty() ? "" : ",", v.name);
  for (const Variable& v : variables) {
    Append(text.sizes, text.sizes.empty() ? "" : ",", v.name, "=", v.size);
  }
  text.formula = Concat("Y[", y.indices, "] = sum[", bound, "](", padded ? "pad(" : "", "X[",
                        x.indices, "]", padded ? ")" : "", "*W[", w.indices, "])");
  text.shapes = {Concat("X=", x.shape), Concat("W=", w.shape)};
  return text;
}

}  // namespace quern
