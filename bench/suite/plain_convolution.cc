// Convolutions by loops as one writes them: the innermost one runs along memory of the output, and
// padding is left out by the bounds of the loops.

#include <algorithm>
#include <array>
#include <memory>

#include "bench/suite/peer.h"
#include "bench/suite/thread_team.h"

namespace quern {
namespace {

// Beyond this the loops only show how slow they are.
constexpr double kMostFlops = 3e8;

// Any convolution with three axes; those that it has not have one element.
struct Loops {
  std::shared_ptr<ConvolutionData> data;
  int64_t batch = 1, in = 1, out = 1;  ///< channels of one group
  int64_t groups = 1;
  std::array<ConvolutionAxis, 3> axes;
  std::array<int64_t, 3> size;  ///< of the output
  int64_t x_image = 0, x_channel = 0, y_image = 0, y_channel = 0, w_in = 0, w_out = 0;
  std::array<int64_t, 3> x_axis = {}, y_axis = {}, w_axis = {};
};

Loops LoopsOf(const Workload& w, const Buffers& buffers) {
  const Convolution& c = w.convolution;
  Loops l;
  l.data = std::make_shared<ConvolutionData>(w, buffers);
  l.batch = c.batch;
  l.in = c.in / c.groups;
  l.out = c.out / c.groups;
  l.groups = c.groups;
  l.size = {1, 1, 1};
  const TensorLayout x = InputLayout(c), y = OutputLayout(c), weight = WeightLayout(c);
  l.x_image = x.strides[0];
  l.x_channel = x.strides[1];
  l.y_image = y.strides[0];
  l.y_channel = y.strides[1];
  l.w_out = weight.strides[0];
  l.w_in = weight.strides[1];
  for (size_t a = 0; a < c.axes.size(); ++a) {
    const size_t to = 3 - c.axes.size() + a;
    l.axes[to] = c.axes[a];
    l.size[to] = y.sizes[2 + a];
    l.x_axis[to] = x.strides[2 + a];
    l.y_axis[to] = y.strides[2 + a];
    l.w_axis[to] = weight.strides[2 + a];
  }
  return l;
}

int64_t InputPlace(const ConvolutionAxis& axis, int64_t y, int64_t k) {
  return y * axis.stride + k * axis.dilation - axis.pad;
}

// The output places of an axis whose input place at `k` exists: from `begin` to before `end`.
struct Span {
  int64_t begin = 0, end = 0;
};
Span Inside(const ConvolutionAxis& axis, int64_t size, int64_t k) {
  Span span{0, size};
  while (span.begin < span.end && InputPlace(axis, span.begin, k) < 0) ++span.begin;
  while (span.begin < span.end && InputPlace(axis, span.end - 1, k) >= axis.in) --span.end;
  return span;
}

void AddRow(float* y, const float* x, int64_t count, int64_t stride, float factor) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] += factor * x[i * stride];
  }
}

// All of one output channel of one image, whose elements are contiguous: rows of x, scaled by one
// weight after the other, are added to rows of y.
void ChannelFirst(const Loops& l, int64_t image, int64_t channel) {
  const auto& [depth, height, width] = l.axes;
  float* y = l.data->y + image * l.y_image + channel * l.y_channel;
  std::fill(y, y + l.size[0] * l.size[1] * l.size[2], 0.0f);
  const float* x = l.data->x + image * l.x_image + channel / l.out * l.in * l.x_channel;
  const float* w = l.data->w + channel * l.w_out;
  for (int64_t c = 0; c < l.in; ++c, x += l.x_channel, w += l.w_in) {
    for (int64_t r = 0; r < depth.kernel; ++r) {
      const Span planes = Inside(depth, l.size[0], r);
      for (int64_t p = 0; p < height.kernel; ++p) {
        const Span rows = Inside(height, l.size[1], p);
        for (int64_t q = 0; q < width.kernel; ++q) {
          const Span row = Inside(width, l.size[2], q);
          const float factor = w[r * l.w_axis[0] + p * l.w_axis[1] + q * l.w_axis[2]];
          for (int64_t t = planes.begin; t < planes.end; ++t) {
            for (int64_t h = rows.begin; h < rows.end; ++h) {
              AddRow(y + t * l.y_axis[0] + h * l.y_axis[1] + row.begin,
                     x + InputPlace(depth, t, r) * l.x_axis[0] +
                         InputPlace(height, h, p) * l.x_axis[1] + InputPlace(width, row.begin, q),
                     row.end - row.begin, width.stride, factor);
            }
          }
        }
      }
    }
  }
}

// All channels of one output place, which are contiguous.
void ChannelLast(const Loops& l, int64_t image, const std::array<int64_t, 3>& place) {
  const int64_t channels = l.groups * l.out;
  float* y = l.data->y + image * l.y_image;
  for (size_t a = 0; a < 3; ++a) y += place[a] * l.y_axis[a];
  std::fill(y, y + channels, 0.0f);
  std::array<int64_t, 3> k = {};
  const auto add_up = [&](const float* x, const float* w) {
    if (l.in == 1 && l.out == 1) {
      for (int64_t c = 0; c < channels; ++c) y[c] += x[c] * w[c];
      return;
    }
    for (int64_t g = 0; g < l.groups; ++g) {
      for (int64_t c = 0; c < l.in; ++c) {
        AddRow(y + g * l.out, w + c * l.w_in + g * l.out, l.out, 1, x[g * l.in + c]);
      }
    }
  };
  for (k[0] = 0; k[0] < l.axes[0].kernel; ++k[0]) {
    for (k[1] = 0; k[1] < l.axes[1].kernel; ++k[1]) {
      for (k[2] = 0; k[2] < l.axes[2].kernel; ++k[2]) {
        int64_t x = image * l.x_image, w = 0;
        bool inside = true;
        for (size_t a = 0; a < 3; ++a) {
          const int64_t at = InputPlace(l.axes[a], place[a], k[a]);
          inside = inside && at >= 0 && at < l.axes[a].in;
          x += at * l.x_axis[a];
          w += k[a] * l.w_axis[a];
        }
        if (inside) add_up(l.data->x + x, l.data->w + w);
      }
    }
  }
}

}  // namespace

std::function<void()> PlainConvolution(const Workload& w, const Buffers& buffers, int threads) {
  if (w.convolution.transposed || w.flops > kMostFlops) return {};
  const Loops l = LoopsOf(w, buffers);
  if (!w.convolution.channels_last) {
    const int64_t channels = l.groups * l.out;
    return [=] {
      InParallel(threads, l.batch * channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ChannelFirst(l, i / channels, i % channels);
      });
    };
  }
  const int64_t rows = l.size[0] * l.size[1];
  return [=] {
    InParallel(threads, l.batch * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % rows;
        for (int64_t column = 0; column < l.size[2]; ++column) {
          ChannelLast(l, i / rows, {row / l.size[1], row % l.size[1], column});
        }
      }
    });
  };
}

}  // namespace quern
