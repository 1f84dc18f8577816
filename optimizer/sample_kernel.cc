#include "optimizer/sample_kernel.h"

#include <algorithm>
#include <vector>

#include "optimizer/work.h"
#include "rewrite/build.h"
#include "rewrite/range_sets.h"
#include "rewrite/scan.h"
#include "rewrite/temporaries.h"

namespace quern {
const UOp* SampleKernel(UOpGraph& graph, const UOp* kernel, double max_cost) {
  const double cost = EstimateWork(kernel).cost;
  if (cost <= max_cost) return kernel;
  // A scan needs all its places; as a reduction each output stands alone.
  kernel = ScansAsReductions(graph, kernel);
  const RangeSets sets(kernel);
  // What stores of temporaries do not share is read as a whole by others.
  const std::vector<Temporary> temporaries = FindTemporaries(kernel);
  std::vector<const UOp*> outputs =
      temporaries.empty() ? sets.Members(sets.Of(kernel)) : SharedRanges(kernel);
  // Thin the long axes most: halve the longest until the rest is small enough.
  std::vector<int64_t> sizes;
  for (const UOp* r : outputs) sizes.push_back(r->range_size());
  double left = EstimateWork(kernel).cost;
  while (left > max_cost && !sizes.empty()) {
    auto longest = std::max_element(sizes.begin(), sizes.end());
    if (*longest <= 2) break;
    const int64_t half = (*longest + 1) / 2;
    left *= static_cast<double>(half) / static_cast<double>(*longest);
    *longest = half;
  }
  std::vector<const UOp*> values;
  std::vector<const UOp*> samples;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const UOp* r = outputs[i];
    if (sizes[i] == r->range_size()) {
      values.push_back(r);
      samples.push_back(r);
      continue;
    }
    // sample · (size − 1) // (samples − 1): 0 … size − 1.
    const UOp* sample = Range(graph, sizes[i], r->range_axis(), r->range_type());
    samples.push_back(sample);
    const UOp* scaled = Mul(graph, sample, IndexConst(graph, r->range_size() - 1));
    values.push_back(Binary(graph, Op::kFloorDiv, scaled,
                            IndexConst(graph, std::max<int64_t>(1, sizes[i] - 1))));
  }
  // Of temporaries, which nobody else sees, there are only so many rows.
  std::vector<const UOp*> from = outputs;
  std::vector<const UOp*> to = values;
  for (const Temporary& t : temporaries) {
    for (const UOp* index : t.accesses) {
      const UOp* gate = index->source_count == 3 ? index->src(2) : nullptr;
      if (gate != nullptr) gate = Substitute(graph, gate, outputs, values);
      from.push_back(index);
      to.push_back(
          Index(graph, t.buffer, Substitute(graph, index->src(1), outputs, samples), gate));
    }
  }
  return Substitute(graph, kernel, from, to);
}

}  // namespace quern
