#ifndef QUERN_BENCH_SUITE_ONEDNN_SESSION_H_
#define QUERN_BENCH_SUITE_ONEDNN_SESSION_H_

#include <dnnl.hpp>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bench/suite/peer.h"

namespace quern {

struct OneDnnSession {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A primitive with its arguments.
struct OneDnnStep {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// The steps as one call, with everything that they need kept alive.
std::function<void()> OneDnnCall(const std::shared_ptr<OneDnnSession>& session,
                                 std::vector<OneDnnStep> steps);
OneDnnStep OneDnnReorder(dnnl::memory from, dnnl::memory to);
/// `from` in another layout, in memory of its own.
dnnl::memory OneDnnReordered(OneDnnSession& session, dnnl::memory from,
                             const dnnl::memory::desc& to);

// What it has for each kind of workload. May throw dnnl::error if it has nothing.
std::vector<PeerCall> OneDnnProduct(const std::shared_ptr<OneDnnSession>& session,
                                    const Workload& w, const Buffers& buffers);
std::vector<PeerCall> OneDnnAttention(const std::shared_ptr<OneDnnSession>& session,
                                      const Workload& w, const Buffers& buffers);
std::vector<PeerCall> OneDnnConvolution(const std::shared_ptr<OneDnnSession>& session,
                                        const Workload& w, const Buffers& buffers);

}  // namespace quern

#endif  // QUERN_BENCH_SUITE_ONEDNN_SESSION_H_
