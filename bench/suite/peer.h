#ifndef QUERN_BENCH_SUITE_PEER_H_
#define QUERN_BENCH_SUITE_PEER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/suite/workload.h"

namespace quern {

/// What a peer is given that Quern is not, or does that other peers do not. Ratios to different
/// footings say different things, so a row has one for each.
enum class Footing {
  kPlain,      ///< the operands as Quern gets them; a constant operand may be reordered ahead if
               ///< it is the weights of a convolution
  kPacked,     ///< B is reordered ahead
  kOwnLayout,  ///< input and output are in a layout of the peer's choice, too
  kFused,      ///< plain operands, and the tail of the product is computed, too
};

/// One way in which a peer computes a workload.
struct PeerCall {
  std::string name;  ///< as it is reported
  Footing footing = Footing::kPlain;
  std::function<void()> call;  ///< what is timed
  std::function<void()>
      finish;  ///< not timed: brings the result to where it is checked; may be empty
};

/// A library (or plain loops) that Quern is compared with.
struct Peer {
  std::string name;
  std::string details;  ///< version and what it took the processor for; why it is missing
  bool found = false;
  std::function<void(int threads)> set_threads;
  /// Does everything that may be done ahead for this shape. Empty if the peer has no such
  /// operation.
  std::function<std::vector<PeerCall>(const Workload&, const Buffers&, int threads)> bind;

  /// For a peer that has one way or, if `call` is empty, none.
  static std::vector<PeerCall> Single(const std::string& name, std::function<void()> call) {
    if (!call) return {};
    return {{.name = name, .call = std::move(call), .finish = {}}};
  }
};

/// The operands of a convolution row. Capsule rows have their weights reordered to those of the
/// convolution that they are.
struct ConvolutionData {
  const float* x = nullptr;
  const float* w = nullptr;
  float* y = nullptr;
  std::vector<float> reordered;  ///< which `w` then points into

  ConvolutionData(const Workload& workload, const Buffers& buffers);
  ConvolutionData(const ConvolutionData&) = delete;
  ConvolutionData& operator=(const ConvolutionData&) = delete;
};

/// Loaded when asked for, apart from each other, because both define the same symbols.
Peer OpenBlasPeer();
Peer BlisPeer();
/// As found when this program was configured.
Peer OneDnnPeer();
Peer EigenPeer();
Peer LibxsmmPeer();
/// What a compiler makes of the obvious loops with -O3 -march=native -ffast-math.
Peer PlainLoopsPeer();
/// The part of it that is cumulative sums: std::partial_sum, and the same in vectors by hand.
std::vector<PeerCall> PlainCumulativeSums(const Workload& w, const Buffers& buffers, int threads);
/// The part of it that is convolutions.
std::function<void()> PlainConvolution(const Workload& w, const Buffers& buffers, int threads);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_PEER_H_
