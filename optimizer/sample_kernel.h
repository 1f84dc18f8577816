#ifndef QUERN_OPTIMIZER_SAMPLE_KERNEL_H_
#define QUERN_OPTIMIZER_SAMPLE_KERNEL_H_

#include "rewrite/graph.h"

namespace quern {

/// Multiplications, additions and the like that a kernel AST does, every iteration counted, and
/// those of floating point alone. A multiply-add counts two.
struct KernelWork {
  double operations = 0;        ///< arithmetic of any type, in the value computed
  double float_operations = 0;  ///< without index arithmetic
  double iterations = 0;        ///< of the innermost bodies
  double bytes = 0;             ///< bytes that must move: every buffer once
};
KernelWork CountWork(const UOp* kernel);

/// `kernel` itself if it takes at most `max_iterations`, else the same kernel for a grid of its
/// outputs: each output axis is thinned evenly, first and last elements included. Stores keep their
/// places in the full buffers.
const UOp* SampleKernel(UOpGraph& graph, const UOp* kernel, double max_iterations);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_SAMPLE_KERNEL_H_
