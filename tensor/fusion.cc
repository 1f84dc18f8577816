#include "tensor/fusion.h"

#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/work.h"
#include "rewrite/scan.h"
#include "tensor/lower.h"

namespace quern::notation {
namespace {

constexpr double kElementwiseGrowth = 2.0;
constexpr double kReductionGrowth = 1.25;
constexpr double kTotalGrowth = 2.0;
// A reduction outside all output loops runs on one thread, and one inside another has no lanes; a
// larger one stays a kernel of its own.
constexpr double kMaxSerialCost = 4096;
constexpr LowerLimits kFusedLimits = {.steps = 4096, .axes = 24};

struct KernelCost {
  double cost = 0;
  double serial = 0;
  bool reduces = false;
  std::vector<int64_t> loads;
};

absl::StatusOr<KernelCost> CostOfKernel(const Formula& formula, const FormulaMeaning& meaning,
                                        int statement, const std::vector<bool>& inlined,
                                        const LowerLimits& limits) {
  UOpGraph graph;
  absl::StatusOr<const UOp*> sink =
      LowerStatement(graph, formula, meaning, statement, inlined, limits);
  if (!sink.ok()) return sink.status();
  const WorkEstimate work = EstimateWork(RecognizeScans(graph, *sink));
  return KernelCost{work.cost, work.serial_cost, work.reduces, LoadedSlots(*sink)};
}

}  // namespace

std::vector<int64_t> LoadedSlots(const UOp* sink) {
  std::set<int64_t> slots;
  for (const UOp* u : Toposort(sink)) {
    if (u->op != Op::kLoad || u->src(0)->src(0)->op != Op::kParam) continue;
    slots.insert(u->src(0)->src(0)->slot());
  }
  return {slots.begin(), slots.end()};
}

absl::StatusOr<std::vector<bool>> ChooseInlined(const Formula& formula,
                                                const FormulaMeaning& meaning) {
  const int count = static_cast<int>(formula.statements.size());
  std::vector<bool> inlined(count, false);
  std::vector<KernelCost> kernels;
  double all_separate = 0;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<KernelCost> k = CostOfKernel(formula, meaning, i, inlined, {});
    if (!k.ok()) return k.status();
    all_separate += k->cost;
    kernels.push_back(*std::move(k));
  }
  const auto loads = [&](int kernel, int64_t slot) {
    return std::binary_search(kernels[kernel].loads.begin(), kernels[kernel].loads.end(), slot);
  };
  const std::vector<TensorInfo>& tensors = meaning.names.tensors;
  double total = all_separate;
  // From the last statement back: when a producer is tried, its consumers have found their kernels.
  for (int i = count - 1; i >= 0; --i) {
    const int64_t slot = meaning.names.written[i];
    if (tensors[slot].role != TensorRole::kIntermediate) continue;
    const bool reads_in_place =
        std::any_of(kernels[i].loads.begin(), kernels[i].loads.end(),
                    [&](int64_t s) { return tensors[s].role == TensorRole::kInOut; });
    // Later the tensor holds other numbers.
    if (reads_in_place) continue;
    // Computed once, a reduction costs nothing.
    if (tensors[slot].constant && kernels[i].reduces) continue;

    inlined[i] = true;
    double before = kernels[i].cost;
    double after = 0;
    double serial = 0;
    bool fits = true;
    std::vector<std::pair<int, KernelCost>> changed;
    for (int k = 0; k < count && fits; ++k) {
      if (inlined[k] || !loads(k, slot)) continue;
      absl::StatusOr<KernelCost> cost = CostOfKernel(formula, meaning, k, inlined, kFusedLimits);
      fits = cost.ok();
      if (!fits) break;
      before += kernels[k].cost;
      after += cost->cost;
      serial = std::max(serial, cost->serial - kernels[k].serial);
      changed.emplace_back(k, *std::move(cost));
    }
    const double growth = kernels[i].reduces ? kReductionGrowth : kElementwiseGrowth;
    fits = fits && serial <= kMaxSerialCost && after <= growth * before &&
           total - before + after <= kTotalGrowth * all_separate;
    inlined[i] = fits;
    if (!fits) continue;
    total += after - before;
    for (auto& [k, cost] : changed) kernels[k] = std::move(cost);
  }
  return inlined;
}

}  // namespace quern::notation
