#include "codegen/register_axes.h"

#include "rewrite/check.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

RegisterAxes::RegisterAxes(const RangeSets& statement) : sets(statement) {
  for (const UOp* r : sets.ranges()) {
    if (r->range_type() == AxisType::kLane) {
      QUERN_CHECK_MSG(lane == nullptr, "one lane axis a statement");
      lane = r;
      lane_bit = sets.Bit(r);
    } else if (IsRegisterAxis(r->range_type())) {
      unrolled_bits |= sets.Bit(r);
    }
  }
}

const UOp* TransposedAxis(const RegisterAxes& axes, const UOp* load, const UOp* group) {
  if (load->op != Op::kLoad || !axes.IsVector(load) || !IsPowerOfTwo(axes.width())) return nullptr;
  const UOp* index = load->src(0);
  const int64_t size = group == nullptr ? 1 : group->range_size();
  // A group is one integer.
  if (group != nullptr && (IsBool(load->dtype) || size * ByteSize(load->dtype.scalar) > 8)) {
    return nullptr;
  }
  const UOp* along = nullptr;
  bool strided = false;
  bool grouped = group == nullptr;
  const LinearForm form = ToLinear(index->src(1));
  for (const auto& [term, coefficient] : form.terms) {
    if (term == axes.lane) {
      strided = coefficient != size;
    } else if (term == group) {
      grouped = coefficient == 1;
    } else if (axes.IsVector(term)) {
      return nullptr;
    } else if (term->op == Op::kRange && axes.Unrolled(term) != 0 && coefficient == size) {
      along = term;
    }
  }
  if (along == nullptr || !strided || !grouped) return nullptr;
  for (const auto& [term, coefficient] : form.terms) {
    // As in i + (i·2)//3: its neighbours do not lie side by side.
    if (term != along && axes.sets.Depends(term, along)) return nullptr;
    if (group != nullptr && term != group && axes.sets.Depends(term, group)) return nullptr;
  }
  // Rows that are partly outside would need masks of their own.
  if (index->source_count == 3 && axes.Unrolled(index->src(2)) != 0) return nullptr;
  const int64_t columns = along->range_size();
  const bool fits =
      IsPowerOfTwo(columns) && columns >= 4 && columns * size <= 64 && axes.width() >= 4;
  return fits ? along : nullptr;
}

bool HoldsGroups(const RegisterAxes& axes, const UOp* index, const UOp* axis) {
  const LinearForm form = ToLinear(index->src(1));
  if (form.CoefficientOf(axis) != 1) return false;
  for (const auto& [term, coefficient] : form.terms) {
    if (term != axis && axes.sets.Depends(term, axis)) return false;
    if (term != axes.lane && axes.IsVector(term)) return false;
    if (term == axes.lane && coefficient != axis->range_size()) return false;
  }
  return index->source_count == 2 ||
         !(axes.IsVector(index->src(2)) || axes.sets.Depends(index->src(2), axis));
}

const UOp* FindStoredGroups(const RegisterAxes& axes, const UOp* store) {
  const UOp* index = store->src(0);
  if (axes.lane == nullptr || index->dtype.lanes != 1 || !axes.IsVector(index->src(1))) {
    return nullptr;
  }
  for (const UOp* r : axes.sets.Members(axes.Unrolled(index->src(1)))) {
    const int64_t size = r->range_size();
    if (size < 2 || size > 8 || !IsPowerOfTwo(size)) continue;
    if (HoldsGroups(axes, index, r)) return r;
  }
  return nullptr;
}

}  // namespace quern
