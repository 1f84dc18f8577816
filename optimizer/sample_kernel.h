#ifndef QUERN_OPTIMIZER_SAMPLE_KERNEL_H_
#define QUERN_OPTIMIZER_SAMPLE_KERNEL_H_

#include "rewrite/graph.h"

namespace quern {

/// `kernel` itself if it costs at most `max_cost` (EstimateWork), else the same kernel for a grid
/// of its outputs: each output axis is thinned evenly, first and last elements included. Stores
/// keep their places in the full buffers.
const UOp* SampleKernel(UOpGraph& graph, const UOp* kernel, double max_cost);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_SAMPLE_KERNEL_H_
