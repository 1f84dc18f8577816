#ifndef QUERN_BENCH_SUITE_CONVOLUTION_H_
#define QUERN_BENCH_SUITE_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace quern {

/// One spatial axis of a convolution.
struct ConvolutionAxis {
  int64_t in = 1;  ///< size of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;  ///< of zeros, at both ends
  int64_t dilation = 1;
};

/// The shape of a convolution.
struct Convolution {
  int64_t batch = 1, in = 1, out = 1;  ///< images, channels
  int64_t groups = 1;
  std::vector<ConvolutionAxis> axes;  ///< 1 to 3, outermost first
  bool channels_last = false;         ///< NHWC and weights as HWIO, else NCHW and OIHW
  /// Each input element is spread over the output. Kernels are multiples of their strides, groups
  /// are 1, and the weights are stored as IOHW (HWIO in channels_last).
  bool transposed = false;

  bool depthwise() const { return groups > 1 && groups == in && groups == out; }
};

int64_t OutputSize(const Convolution& c, const ConvolutionAxis& axis);

/// A tensor with its dimensions in the order of the mathematics, and where they are in memory.
struct TensorLayout {
  std::vector<int64_t> sizes, strides;

  int64_t elements() const;
};
TensorLayout InputLayout(const Convolution& c);   ///< image, channel, axes
TensorLayout OutputLayout(const Convolution& c);  ///< image, channel, axes
/// Output channel, input channel of one group, axes of the kernel.
TensorLayout WeightLayout(const Convolution& c);

/// Multiplications and additions of the whole, zeros of the padding included.
double FlopsOf(const Convolution& c);

/// The convolution in index notation: Y from X and W.
struct ConvolutionText {
  std::string formula, sizes;
  std::vector<std::string> shapes;  ///< of X and W, as for ParseShape
};
ConvolutionText TextOf(const Convolution& c);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_CONVOLUTION_H_
