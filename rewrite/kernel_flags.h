#ifndef QUERN_REWRITE_KERNEL_FLAGS_H_
#define QUERN_REWRITE_KERNEL_FLAGS_H_

#include <cstdint>

#include "rewrite/graph.h"

namespace quern {

/// In `arg.a` of a kernel's kSink: LOCAL is forbidden (the action NOLOCALS).
inline constexpr int64_t kNoLocalsFlag = 1;

/// In `arg.a` of a kStage: its buffer is filled once and kept between runs; of a kPhase: it fills
/// such buffers and runs once.
inline constexpr int64_t kOnceFlag = 1;

/// In `arg.a` of the kSink or kPhase of a phase: of what earlier phases wrote its threads read only
/// what was written by threads up to themselves, so that phases may take turns on a few threads'
/// parts of the data while the caches hold them.
inline constexpr int64_t kPartByPartFlag = 2;

/// Whether the buffer of a slot holds the same numbers in each run, such as the weights of a
/// network ("constant"). `arg.b` of a kSink has a bit for each slot below 63; what lies above is
/// not marked.
inline bool IsConstantSlot(const UOp* sink, int64_t slot) {
  return slot >= 0 && slot < 63 && (sink->arg.b >> slot & 1) != 0;
}

/// The kernel with these slots marked as constant, besides those that are.
inline const UOp* MarkConstantSlot(UOpGraph& graph, const UOp* sink, int64_t slot) {
  if (slot < 0 || slot >= 63) return sink;
  return graph.Make(sink->op, sink->dtype, sink->src(),
                    {sink->arg.a, sink->arg.b | int64_t{1} << slot});
}

}  // namespace quern

#endif  // QUERN_REWRITE_KERNEL_FLAGS_H_
