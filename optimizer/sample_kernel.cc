#include "optimizer/sample_kernel.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rewrite/build.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

double Volume(const RangeSets& sets, uint64_t set) {
  double volume = 1;
  for (const UOp* r : sets.Members(set)) volume *= static_cast<double>(r->range_size());
  return volume;
}

// Nodes of index arithmetic: whatever an INDEX uses for its place and gate.
absl::flat_hash_set<const UOp*> IndexNodes(const UOp* kernel) {
  absl::flat_hash_set<const UOp*> nodes;
  std::vector<const UOp*> stack;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op == Op::kIndex) stack.insert(stack.end(), u->src().begin() + 1, u->src().end());
  }
  while (!stack.empty()) {
    const UOp* u = stack.back();
    stack.pop_back();
    if (u->op == Op::kLoad || !nodes.insert(u).second) continue;
    stack.insert(stack.end(), u->src().begin(), u->src().end());
  }
  return nodes;
}

}  // namespace

KernelWork CountWork(const UOp* kernel) {
  const RangeSets sets(kernel);
  const absl::flat_hash_set<const UOp*> index_nodes = IndexNodes(kernel);
  KernelWork work;
  for (const UOp* u : Toposort(kernel)) {
    if (IsBuffer(u->op)) {
      work.bytes += static_cast<double>(u->buffer_size() * ByteSize(u->dtype.scalar));
    }
    if (u->op == Op::kStore) work.iterations += Volume(sets, sets.Of(u));
    if (u->op == Op::kReduce) {
      uint64_t set = sets.Of(u);
      for (const UOp* r : u->src().subspan(1)) set |= sets.Bit(r);
      const double terms = Volume(sets, set);
      work.iterations += terms;
      work.operations += terms;
      if (IsFloat(u->dtype)) work.float_operations += terms;
      continue;
    }
    if (!IsElementwise(u->op) || u->op == Op::kCast || u->op == Op::kBitcast) continue;
    if (index_nodes.contains(u) || IsIndex(u->dtype)) continue;
    const double count = Volume(sets, sets.Of(u)) * (u->op == Op::kMulAdd ? 2 : 1);
    work.operations += count;
    if (IsFloat(u->dtype)) work.float_operations += count;
  }
  return work;
}

const UOp* SampleKernel(UOpGraph& graph, const UOp* kernel, double max_iterations) {
  const double iterations = CountWork(kernel).iterations;
  if (iterations <= max_iterations) return kernel;
  const RangeSets sets(kernel);
  std::vector<const UOp*> outputs = sets.Members(sets.Of(kernel));
  // Thin the long axes most: halve the longest until the rest is small enough.
  std::vector<int64_t> sizes;
  for (const UOp* r : outputs) sizes.push_back(r->range_size());
  double left = iterations;
  while (left > max_iterations && !sizes.empty()) {
    auto longest = std::max_element(sizes.begin(), sizes.end());
    if (*longest <= 2) break;
    const int64_t half = (*longest + 1) / 2;
    left *= static_cast<double>(half) / static_cast<double>(*longest);
    *longest = half;
  }
  std::vector<const UOp*> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const UOp* r = outputs[i];
    if (sizes[i] == r->range_size()) {
      values.push_back(r);
      continue;
    }
    // sample · (size − 1) // (samples − 1): 0 … size − 1.
    const UOp* sample = Range(graph, sizes[i], r->range_axis(), r->range_type());
    const UOp* scaled = Mul(graph, sample, IndexConst(graph, r->range_size() - 1));
    values.push_back(Binary(graph, Op::kFloorDiv, scaled,
                            IndexConst(graph, std::max<int64_t>(1, sizes[i] - 1))));
  }
  return Substitute(graph, kernel, outputs, values);
}

}  // namespace quern
