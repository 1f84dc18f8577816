#ifndef QUERN_CODEGEN_SHARE_VALUES_H_
#define QUERN_CODEGEN_SHARE_VALUES_H_

#include <cstdint>

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Keeps values that two loops, one after the other, would both compute: the first writes them to a
/// buffer, the second reads that.
///
///     for k: r0 += exp(x[k] - m)          →  for k: s0[k] = exp(x[k] - m); r0 += exp(x[k] - m)
///     for j: y[j] = exp(x[j] - m) / r0       for j: y[j] = s0[j] / r0
///
/// Takes the statements of Linearize. Two values are the same if one becomes the other when the
/// loops and register axes around the first are renamed to those around the second, in order and
/// with equal sizes, and if nothing that they read is written from the first to the second. They
/// are kept if computing them costs more than memory does and the buffer stays in cache; all else
/// is left as it is. Where the second loop overwrites the elements of an output, each iteration one
/// of its own, the values wait there instead of in scratch memory; not in outputs of
/// `stream_bytes` or more, which are not to come to a cache.
const UOp* ShareValues(UOpGraph& graph, const UOp* sink, const Target& target,
                       int64_t stream_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_SHARE_VALUES_H_
