#ifndef QUERN_CODEGEN_STREAM_STORES_H_
#define QUERN_CODEGEN_STREAM_STORES_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// In `arg.a` of a kStore: past the caches, if the buffer begins at a cache line.
inline constexpr int64_t kStreamFlag = 1;

/// The size from which on an output is not expected in a cache afterwards: a share of the last
/// level, or what a small one holds.
int64_t StreamBytes(const Target& target);

/// Marks the stores to outputs of at least `least_bytes`. A normal store
/// reads the line that it is going to overwrite from memory; one past the caches does not, which
/// saves a third of the traffic of `a*b+c` and of what a copy moves.
///
/// Only whole cache lines of buffers that the kernel does not read. Runs after Expand; the machine
/// code decides at run time whether the buffer is aligned.
const UOp* MarkStreams(UOpGraph& graph, const UOp* sink, int64_t least_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_STREAM_STORES_H_
