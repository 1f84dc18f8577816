#include <utility>

#include "bench/suite/peer.h"
#include "bench/suite/reference_sampling.h"

namespace quern {
namespace {

// A few of each axis: borders, where padding is, and some between.
constexpr int64_t kImages = 4, kChannels = 12, kPlaces = 9;

// The pairs of an input and a kernel place that meet in output place `y` of one axis.
std::vector<std::pair<int64_t, int64_t>> Meetings(const Convolution& c, const ConvolutionAxis& axis,
                                                  int64_t y) {
  std::vector<std::pair<int64_t, int64_t>> meetings;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    int64_t x = 0;
    if (c.transposed) {
      const int64_t distance = y + axis.pad - k;
      if (distance < 0 || distance % axis.stride != 0) continue;
      x = distance / axis.stride;
    } else {
      x = y * axis.stride + k * axis.dilation - axis.pad;
    }
    if (x >= 0 && x < axis.in) meetings.emplace_back(x, k);
  }
  return meetings;
}

struct Offsets {
  int64_t input = 0, weight = 0;
};

// What the places of all axes add to the addresses.
std::vector<Offsets> OffsetsAt(const Convolution& c, const std::vector<int64_t>& place,
                               const TensorLayout& input, const TensorLayout& weight) {
  std::vector<Offsets> all = {{}};
  for (size_t a = 0; a < c.axes.size(); ++a) {
    std::vector<Offsets> extended;
    for (const auto& [x, k] : Meetings(c, c.axes[a], place[a])) {
      for (const Offsets& o : all) {
        extended.push_back(
            {o.input + x * input.strides[2 + a], o.weight + k * weight.strides[2 + a]});
      }
    }
    all = std::move(extended);
  }
  return all;
}

}  // namespace

std::string CheckConvolution(const Workload& w, const Buffers& buffers) {
  const Convolution& c = w.convolution;
  const ConvolutionData data(w, buffers);
  const TensorLayout input = InputLayout(c), weight = WeightLayout(c), output = OutputLayout(c);
  const int64_t group_in = c.in / c.groups, group_out = c.out / c.groups;
  std::vector<std::vector<int64_t>> places = {{}};
  for (size_t a = 0; a < c.axes.size(); ++a) {
    std::vector<std::vector<int64_t>> extended;
    for (const std::vector<int64_t>& place : places) {
      for (int64_t next : Chosen(output.sizes[2 + a], kPlaces)) {
        extended.push_back(place);
        extended.back().push_back(next);
      }
    }
    places = std::move(extended);
  }
  for (const std::vector<int64_t>& place : places) {
    const std::vector<Offsets> offsets = OffsetsAt(c, place, input, weight);
    for (int64_t n : Chosen(c.batch, kImages)) {
      for (int64_t o : Chosen(c.out, kChannels)) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < group_in; ++i) {
          const float* x =
              data.x + n * input.strides[0] + (o / group_out * group_in + i) * input.strides[1];
          const float* filter = data.w + o * weight.strides[0] + i * weight.strides[1];
          for (const Offsets& at : offsets) {
            const double term = static_cast<double>(x[at.input]) * filter[at.weight];
            sum += term;
            squares += term * term;
          }
        }
        int64_t to = n * output.strides[0] + o * output.strides[1];
        for (size_t a = 0; a < place.size(); ++a) to += place[a] * output.strides[2 + a];
        const double terms = static_cast<double>(group_in) * static_cast<double>(offsets.size());
        const std::string wrong = Compare(w, buffers, to, {sum, SumTolerance(terms, squares)});
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "ok";
}

}  // namespace quern
