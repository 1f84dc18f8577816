#include "bench/suite/peer.h"

namespace quern {

ConvolutionData::ConvolutionData(const Workload& workload, const Buffers& buffers)
    : x(buffers.Get("X")), w(buffers.Get("W")), y(buffers.Get("Y")) {
  if (workload.capsule == 1) return;
  const Convolution& c = workload.convolution;
  const int64_t side = workload.capsule, in = c.in / side, out = c.out / side;
  const TensorLayout layout = WeightLayout(c);
  reordered.resize(layout.elements());
  const int64_t points = layout.elements() / (c.in * c.out);
  // From [point,k,j,c,o] to [point,k,c,j,o].
  const float* from = w;
  for (int64_t point = 0; point < points; ++point) {
    for (int64_t k = 0; k < side; ++k) {
      for (int64_t j = 0; j < side; ++j) {
        for (int64_t i = 0; i < in; ++i) {
          float* to = &reordered[(point * c.in + k * in + i) * c.out + j * out];
          for (int64_t o = 0; o < out; ++o) to[o] = *from++;
        }
      }
    }
  }
  w = reordered.data();
}

}  // namespace quern
