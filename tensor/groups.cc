#include "tensor/groups.h"

#include <algorithm>
#include <utility>

#include "optimizer/row_groups.h"
#include "rewrite/range_sets.h"
#include "rewrite/temporaries.h"
#include "tensor/fusion.h"

namespace quern::notation {
namespace {

// A program is made before its target is known; these are the caches of one core of most.
constexpr int64_t kSecondCache = int64_t{1} << 20;
// Intermediates below this stay in a cache between kernels of their own.
constexpr int64_t kLeastBytes = kSecondCache;
// A block of rows of all intermediates must leave room for operands.
constexpr int64_t kLeastRows = 8;
constexpr int64_t kBlockBytes = kSecondCache / 2;
// What every block of rows reads again: more of it would come from memory each time.
constexpr int64_t kMostOperands = 4 * kSecondCache;
// What rows share is packed for them, which fewer do not pay for.
constexpr int64_t kLeastReuse = 128;
constexpr LowerLimits kGroupLimits = {.steps = 4096, .axes = 24};

int64_t Volume(const std::vector<const UOp*>& ranges) {
  int64_t volume = 1;
  for (const UOp* r : ranges) volume *= r->range_size();
  return volume;
}

int64_t BytesOf(const UOp* buffer) {
  return buffer->buffer_size() * ByteSize(buffer->dtype.scalar);
}

// Matrix instructions, which kernels of narrow types may use, are worth more than what a group
// saves.
bool MayUseMatrixInstructions(const UOp* sink, const RangeSets& sets, const UOp* rows) {
  for (const StatementAccesses& statement : CollectAccesses(sink)) {
    if (!MultipliesRows(sets, statement, rows)) continue;
    for (const UOp* load : statement.loads) {
      if (ByteSize(load->dtype.scalar) < 4) return true;
    }
  }
  return false;
}

bool Pays(const UOp* sink) {
  const RangeSets sets(sink);
  const std::vector<const UOp*> shared = SharedRanges(sink);
  const int64_t iterations = std::max<int64_t>(1, Volume(shared));
  int64_t bytes = 0;
  for (const Temporary& t : FindTemporaries(sink)) bytes += BytesOf(t.buffer);
  if (bytes < kLeastBytes || bytes / iterations * kLeastRows > kBlockBytes) return false;
  const UOp* rows = RowsOfGroup(sink, sets, shared);
  return rows != nullptr && rows->range_size() >= kLeastReuse &&
         !MayUseMatrixInstructions(sink, sets, rows) &&
         SharedOperandBytes(sink, sets, shared, rows) <= kMostOperands;
}

class GroupChooser {
 public:
  GroupChooser(const Formula& formula, const FormulaMeaning& meaning,
               const std::vector<bool>& inlined)
      : formula_(formula),
        meaning_(meaning),
        inlined_(inlined),
        loads_(formula.statements.size()),
        taken_(inlined) {
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (inlined[i]) continue;
      UOpGraph graph;
      absl::StatusOr<const UOp*> sink =
          LowerStatement(graph, formula, meaning, static_cast<int>(i), inlined);
      // What could not be lowered will be reported where its kernel is made.
      if (sink.ok()) loads_[i] = LoadedSlots(*sink);
      taken_[i] = !sink.ok() || UsesInPlace(static_cast<int>(i)) ||
                  Written(static_cast<int>(i)).constant;  // It runs once.
    }
  }

  std::vector<StatementGroup> Run() {
    std::vector<StatementGroup> groups;
    for (int last = static_cast<int>(loads_.size()) - 1; last > 0; --last) {
      if (taken_[last]) continue;
      StatementGroup group = {{last}, {}};
      for (int i = last - 1; i >= 0; --i) {
        if (taken_[i] || !ReadOnlyBy(i, group.statements)) continue;
        std::vector<int> longer = group.statements;
        longer.insert(longer.begin(), i);
        StatementGroup trial = FindSharedVariables(formula_, meaning_, longer, inlined_);
        UOpGraph graph;
        absl::StatusOr<const UOp*> sink =
            LowerGroup(graph, formula_, meaning_, trial, inlined_, kGroupLimits);
        if (sink.ok() && Pays(*sink)) group = std::move(trial);
      }
      if (group.statements.size() < 2) continue;
      for (int i : group.statements) taken_[i] = true;
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  const TensorInfo& Written(int statement) const {
    return meaning_.names.tensors[meaning_.names.written[statement]];
  }

  // A tensor that is overwritten holds other numbers where the kernel of a group stands.
  bool UsesInPlace(int statement) const {
    return Written(statement).role == TensorRole::kInOut ||
           std::any_of(loads_[statement].begin(), loads_[statement].end(), [&](int64_t slot) {
             return meaning_.names.tensors[slot].role == TensorRole::kInOut;
           });
  }

  bool ReadOnlyBy(int statement, const std::vector<int>& readers) const {
    if (Written(statement).role != TensorRole::kIntermediate) return false;
    const int64_t slot = meaning_.names.written[statement];
    bool read = false;
    for (size_t k = 0; k < loads_.size(); ++k) {
      if (!std::binary_search(loads_[k].begin(), loads_[k].end(), slot)) continue;
      read = true;
      const bool inside =
          std::find(readers.begin(), readers.end(), static_cast<int>(k)) != readers.end();
      if (!inside) return false;
    }
    return read;
  }

  const Formula& formula_;
  const FormulaMeaning& meaning_;
  const std::vector<bool>& inlined_;
  std::vector<std::vector<int64_t>> loads_;  // per statement: the tensors that its kernel reads
  std::vector<bool> taken_;                  // inlined, in a group, or in no group in any case
};

}  // namespace

std::vector<StatementGroup> ChooseGroups(const Formula& formula, const FormulaMeaning& meaning,
                                         const std::vector<bool>& inlined) {
  return GroupChooser(formula, meaning, inlined).Run();
}

}  // namespace quern::notation
