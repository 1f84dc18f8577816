#ifndef QUERN_BENCH_SUITE_PEER_H_
#define QUERN_BENCH_SUITE_PEER_H_

#include <functional>
#include <string>
#include <vector>

#include "bench/suite/workload.h"

namespace quern {

/// A library (or plain loops) that Quern is compared with.
struct Peer {
  std::string name;
  std::string details;  ///< version and what it took the processor for; why it is missing
  bool found = false;
  std::function<void(int threads)> set_threads;
  /// Everything that may be done ahead for this shape; the returned call is what is timed. Empty if
  /// the peer has no such operation.
  std::function<std::function<void()>(const Workload&, const Buffers&, int threads)> bind;
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

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_PEER_H_
