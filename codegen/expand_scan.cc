#include "codegen/expand_scan.h"

#include "rewrite/build.h"

namespace quern {
namespace {

using Place = std::vector<int64_t>;

class ScanExpander {
 public:
  ScanExpander(UOpGraph& graph, const UOp* scan, const UOp* lane,
               const std::function<const UOp*(const Place&)>& value_at)
      : g_(graph), scan_(scan), lane_(lane), value_at_(value_at) {}

  // The ranges from number `k` on, those before it where `at` says; nullptr: no place counts.
  const UOp* ScanFrom(size_t k, Place& at) {
    if (k == Ranges()) return Exclusive() ? nullptr : value_at_(at);
    const UOp* within = ScanFrom(k + 1, at);
    if (RangeAt(k) != lane_) return Combine(Before(k, at), within);
    const UOp* vector = Vector(TotalFrom(k + 1, at));
    const bool last = k + 1 == Ranges();
    if (last && !Exclusive()) return Prefix(vector, scan_->arg.b);
    return Combine(Prefix(vector, scan_->arg.b | kScanExclusive), within);
  }

 private:
  size_t Ranges() const { return scan_->source_count - 1; }
  const UOp* RangeAt(size_t k) const { return scan_->src(k + 1); }
  bool Exclusive() const { return (scan_->arg.b & kScanExclusive) != 0; }
  bool Reverse() const { return (scan_->arg.b & kScanReverse) != 0; }

  // Everything over the ranges from number `k` on.
  const UOp* TotalFrom(size_t k, Place& at) {
    if (k == Ranges()) return value_at_(at);
    if (RangeAt(k) == lane_) {
      const UOp* prefix = Prefix(Vector(TotalFrom(k + 1, at)), scan_->arg.b & kScanReverse);
      const int64_t last = Reverse() ? 0 : prefix->dtype.lanes - 1;
      return g_.Make(Op::kExtract, prefix->dtype.Scalar(), {prefix}, {last, 0});
    }
    const int64_t here = at[k];
    const UOp* total = nullptr;
    for (int64_t i = 0; i < RangeAt(k)->range_size(); ++i) {
      at[k] = Reverse() ? RangeAt(k)->range_size() - 1 - i : i;
      total = Combine(total, TotalFrom(k + 1, at));
    }
    at[k] = here;
    return total;
  }

  // What comes before along range `k`; built up from the first place, so that copies share it.
  const UOp* Before(size_t k, Place& at) {
    const int64_t here = at[k];
    const int64_t size = RangeAt(k)->range_size();
    const UOp* before = nullptr;
    for (int64_t i = 0; i < (Reverse() ? size - 1 - here : here); ++i) {
      at[k] = Reverse() ? size - 1 - i : i;
      before = Combine(before, TotalFrom(k + 1, at));
    }
    at[k] = here;
    return before;
  }

  const UOp* Combine(const UOp* before, const UOp* here) {
    if (before == nullptr || here == nullptr) return before == nullptr ? here : before;
    if (here->dtype.lanes != 1) before = Vector(before);
    if (before->dtype.lanes != 1) here = Vector(here);
    return Binary(g_, scan_->reduce_op(), before, here);
  }

  const UOp* Prefix(const UOp* vector, int64_t flags) {
    return g_.Make(Op::kPrefix, vector->dtype, {vector}, {scan_->arg.a, flags});
  }

  const UOp* Vector(const UOp* u) {
    if (u->dtype.lanes != 1) return u;
    const int lanes = static_cast<int>(lane_->range_size());
    return g_.Make(Op::kBroadcast, u->dtype.WithLanes(lanes), {u});
  }

  UOpGraph& g_;
  const UOp* scan_;
  const UOp* lane_;
  const std::function<const UOp*(const Place&)>& value_at_;
};

}  // namespace

const UOp* ExpandScan(UOpGraph& graph, const UOp* scan, const UOp* lane, std::vector<int64_t> at,
                      const std::function<const UOp*(const std::vector<int64_t>&)>& value_at) {
  const UOp* result = ScanExpander(graph, scan, lane, value_at).ScanFrom(0, at);
  return result != nullptr ? result : ReduceIdentity(graph, scan->reduce_op(), scan->dtype);
}

}  // namespace quern
