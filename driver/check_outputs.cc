#include "driver/check_outputs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "optimizer/tolerance.h"
#include "optimizer/work.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/range_sets.h"
#include "rewrite/scan.h"
#include "rewrite/simplify.h"
#include "rewrite/temporaries.h"
#include "runtime/random_data.h"

namespace quern {
namespace {

// Above this many operations only a sample is interpreted.
constexpr double kInterpretAllCost = 5e6;
constexpr int kSamples = 64;
// Where each takes long, fewer do: the first, the last and some between.
constexpr int kLeastSamples = 4;
constexpr double kSampledCost = 4e8;

void Note(const TensorInfo& t, const Difference& d, double tolerance, const void* want,
          const void* got, OutputCheck& check) {
  check.max_abs_error = std::max(check.max_abs_error, d.max_abs);
  check.max_rel_error = std::max(check.max_rel_error, d.max_rel);
  if (d.worst < 0 || d.max_rel <= tolerance) return;
  if (check.ok) {
    check.worst = Concat("element ", d.worst, " of ", t.name, " is ",
                         ElementAsDouble(t.dtype.scalar, got, d.worst), ", not ",
                         ElementAsDouble(t.dtype.scalar, want, d.worst));
  }
  check.ok = false;
}

const TensorInfo& TensorOf(const Program& program, int64_t slot, size_t* place) {
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (program.tensors[i].slot != slot) continue;
    *place = i;
    return program.tensors[i];
  }
  QUERN_CHECK_MSG(false, "a kernel uses a tensor of its program");
}

int SamplesOf(const UOp* kernel, const UOp* store) {
  const RangeSets sets(store);
  double outputs = 1;
  for (const UOp* r : sets.Members(sets.Of(store))) {
    outputs *= static_cast<double>(r->range_size());
  }
  const double cost = EstimateWork(kernel).cost / std::max(1.0, outputs);
  return static_cast<int>(std::clamp<double>(kSampledCost / cost, kLeastSamples, kSamples));
}

// Interprets single elements of one store, each as a kernel of its own that writes one number. The
// stores before it write the temporaries that it reads, at the same place of the shared loops.
absl::Status CompareSample(const Program& program, const UOp* sink, const UOp* store, int samples,
                           std::vector<BufferView> inputs, const TensorMemory& got,
                           double tolerance, OutputCheck& check) {
  const UOp* element = store->src(0);
  size_t place = 0;
  const TensorInfo& t = TensorOf(program, element->src(0)->slot(), &place);
  const RangeSets sets(store);
  const std::vector<const UOp*> ranges = sets.Members(sets.Of(store));
  for (const UOp* r : ranges) {
    if (r->range_size() == 0) return absl::OkStatus();
  }
  const std::vector<const UOp*> shared = SharedRanges(sink);
  const int64_t free_slot = int64_t{1} << 40;
  const int64_t item = ByteSize(t.dtype.scalar);
  std::vector<char> want(samples * item), have(samples * item);
  std::vector<int64_t> offsets;
  std::mt19937_64 random(1);
  for (int n = 0; n < samples; ++n) {
    UOpGraph g;
    std::vector<const UOp*> values;
    for (const UOp* r : ranges) {
      const int64_t last = r->range_size() - 1;
      // The corners first: that is where guards and tails are.
      const int64_t at = n == 0 ? 0
                         : n == 1
                             ? last
                             : static_cast<int64_t>(random() % (static_cast<uint64_t>(last) + 1));
      values.push_back(IndexConst(g, at));
    }
    // A scan needs all its places; as a reduction each element stands alone.
    const UOp* own = ScansAsReductions(g, g.Import(store));
    std::vector<const UOp*> own_ranges;
    for (const UOp* r : ranges) own_ranges.push_back(g.Import(r));
    own = Substitute(g, own, own_ranges, values);
    if (own->src(0)->source_count > 2) {
      const UOp* gate = Simplify(g, own->src(0)->src(2));
      if (!gate->IsConst() || gate->IntValue() == 0) continue;
    }
    const UOp* offset = Simplify(g, own->src(0)->src(1));
    if (!offset->IsConst()) continue;
    const UOp* one = Param(g, t.dtype, free_slot, 1);
    std::vector<const UOp*> stores;
    std::vector<const UOp*> from;
    std::vector<const UOp*> to;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (std::find(shared.begin(), shared.end(), ranges[i]) == shared.end()) continue;
      from.push_back(own_ranges[i]);
      to.push_back(values[i]);
    }
    for (const UOp* earlier : sink->src()) {
      if (earlier == store) break;
      if (earlier->src(0)->src(0)->op != Op::kScratch) continue;
      stores.push_back(Substitute(g, g.Import(earlier), from, to));
    }
    stores.push_back(Store(g, Index(g, one, IndexConst(g, 0)), own->src(1)));
    const UOp* kernel = Sink(g, stores);
    char* result = want.data() + static_cast<int64_t>(offsets.size()) * item;
    inputs.push_back({free_slot, result, item});
    const absl::Status s = Interpret(kernel, inputs);
    inputs.pop_back();
    if (!s.ok()) return s;
    std::copy_n(
        static_cast<const char*>(got.data(static_cast<int64_t>(place))) + offset->IntValue() * item,
        item, have.data() + static_cast<int64_t>(offsets.size()) * item);
    offsets.push_back(offset->IntValue());
  }
  Difference d =
      CompareData(t.dtype.scalar, static_cast<int64_t>(offsets.size()), want.data(), have.data());
  const bool was_ok = check.ok;
  Note(t, d, tolerance, want.data(), have.data(), check);
  if (was_ok && !check.ok) {
    check.worst = Concat("element ", offsets[d.worst], " of ", t.name, " is ",
                         ElementAsDouble(t.dtype.scalar, have.data(), d.worst),
                         ", but the interpreter finds ",
                         ElementAsDouble(t.dtype.scalar, want.data(), d.worst));
  }
  check.interpreted += static_cast<int64_t>(offsets.size());
  return absl::OkStatus();
}

}  // namespace

void CompareOutputs(const Program& program, const TensorMemory& want, const TensorMemory& got,
                    OutputCheck& check) {
  for (const KernelInfo& kernel : program.kernels) {
    size_t place = 0;
    const TensorInfo& t = TensorOf(program, kernel.output, &place);
    const void* a = want.data(static_cast<int64_t>(place));
    const void* b = got.data(static_cast<int64_t>(place));
    Note(t, CompareData(t.dtype.scalar, t.elements(), a, b),
         2 * OutputTolerance(kernel.sink, t.dtype), a, b, check);
  }
}

absl::Status CompareWithInterpreter(const Program& program, const TensorMemory& before,
                                    const TensorMemory& got, OutputCheck& check) {
  // A kernel reads what the kernels before it have left; `seen` follows that.
  std::vector<BufferView> seen = before.Views();
  const std::vector<BufferView> after = got.Views();
  for (const KernelInfo& kernel : program.kernels) {
    size_t place = 0;
    const TensorInfo& t = TensorOf(program, kernel.output, &place);
    const double tolerance = OutputTolerance(kernel.sink, t.dtype);
    if (EstimateWork(kernel.sink).cost > kInterpretAllCost) {
      for (const UOp* store : kernel.sink->src()) {
        if (store->src(0)->src(0)->op == Op::kScratch) continue;
        const int samples = SamplesOf(kernel.sink, store);
        const absl::Status s =
            CompareSample(program, kernel.sink, store, samples, seen, got, tolerance, check);
        if (!s.ok()) return s;
      }
    } else {
      AlignedMemory result = AllocateAligned(t.bytes());
      if (result == nullptr) return absl::ResourceExhaustedError("no memory for a check");
      std::copy_n(static_cast<const char*>(seen[place].data), t.bytes(),
                  static_cast<char*>(result.get()));
      std::vector<BufferView> views = seen;
      views[place].data = result.get();
      if (absl::Status s = Interpret(kernel.sink, views); !s.ok()) return s;
      Note(t, CompareData(t.dtype.scalar, t.elements(), result.get(), after[place].data), tolerance,
           result.get(), after[place].data, check);
      check.interpreted += t.elements();
    }
    seen[place] = after[place];
  }
  return absl::OkStatus();
}

}  // namespace quern
