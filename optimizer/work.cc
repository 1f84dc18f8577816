#include "optimizer/work.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "rewrite/graph.h"
#include "rewrite/range_sets.h"

namespace quern {
namespace {

// In units of an addition. Index arithmetic is free: it is strength-reduced into addressing.
double CostOf(const UOp* u) {
  switch (u->op) {
    case Op::kLoad:
    case Op::kStore:
      return 1;
    case Op::kDiv:
    case Op::kSqrt:
      return 4;
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kTruncDiv:
    case Op::kTruncMod:
      return IsIndex(u->dtype) ? 1 : 8;
    case Op::kExp:
    case Op::kExp2:
    case Op::kLog:
    case Op::kLog2:
    case Op::kSin:
    case Op::kTanh:
    case Op::kErf:
      return 10;
    case Op::kScan:
      return 2;  // a prefix and what came before
    default:
      return IsElementwise(u->op) && !IsIndex(u->dtype) && u->op != Op::kConst ? 1 : 0;
  }
}

bool IsFlop(const UOp* u) {
  if (!IsFloat(u->dtype) && !IsInteger(u->dtype)) return false;
  switch (u->op) {
    case Op::kCast:
    case Op::kBitcast:
    case Op::kWhere:
    case Op::kBroadcast:
      return false;
    default:
      return IsElementwise(u->op);
  }
}

// For each range, the set of ranges whose loops are around its body.
class LoopChains {
 public:
  LoopChains(const RangeSets& sets, const std::vector<const UOp*>& order) : sets_(sets) {
    for (const UOp* u : order) {
      if (u->op == Op::kStore) stores_.push_back(sets.Of(u));
      if (u->op != Op::kReduce) continue;
      for (const UOp* r : u->src().subspan(1)) {
        closer_[std::countr_zero(sets.Bit(r))] = u;
      }
    }
  }

  uint64_t Around(uint64_t free) {
    uint64_t around = 0;
    for (uint64_t rest = free; rest != 0; rest &= rest - 1) {
      around |= Chain(std::countr_zero(rest));
    }
    return around;
  }

  // Whether one of the ranges is that of a reduction.
  bool InsideReduction(uint64_t free) const {
    for (uint64_t rest = free; rest != 0; rest &= rest - 1) {
      if (closer_[std::countr_zero(rest)] != nullptr) return true;
    }
    return false;
  }

  double Iterations(uint64_t around) const {
    double n = 1;
    for (uint64_t rest = around; rest != 0; rest &= rest - 1) {
      n *= static_cast<double>(sets_.ranges()[std::countr_zero(rest)]->range_size());
    }
    return n;
  }

 private:
  uint64_t Chain(int bit) {
    if (chain_[bit] != 0) return chain_[bit];
    const uint64_t up_to = (uint64_t{2} << bit) - 1;  // Bits are numbered by axis order.
    uint64_t chain = 0;
    if (closer_[bit] == nullptr && IsRegisterAxis(sets_.ranges()[bit]->range_type())) {
      return chain_[bit] = uint64_t{1} << bit;  // It is no loop, and all others are around it.
    }
    if (closer_[bit] == nullptr) {
      for (size_t b = 0; b < sets_.ranges().size(); ++b) {
        if (closer_[b] == nullptr) chain |= uint64_t{1} << b;
      }
      // Loops that not all stores with this one have are around those stores only.
      for (uint64_t store : stores_) {
        if ((store >> bit & 1) != 0) chain &= store;
      }
    } else {
      for (const UOp* r : closer_[bit]->src().subspan(1)) chain |= sets_.Bit(r);
    }
    chain &= up_to;
    if (closer_[bit] != nullptr) chain |= Around(sets_.Of(closer_[bit]));
    return chain_[bit] = chain;
  }

  const RangeSets& sets_;
  std::array<const UOp*, 64> closer_{};
  std::array<uint64_t, 64> chain_{};
  std::vector<uint64_t> stores_;
};

}  // namespace

WorkEstimate EstimateWork(const UOp* sink) {
  WorkEstimate work;
  const RangeSets sets(sink);
  QUERN_CHECK(sets.ranges().size() <= RangeSets::kMaxRanges);
  const std::vector<const UOp*> order = Toposort(sink);
  LoopChains chains(sets, order);
  bool has_output_loops = false;
  for (const UOp* u : order) {
    if (u->op == Op::kStore && sets.Of(u) != 0) has_output_loops = true;
  }
  for (const UOp* u : order) {
    if (u->op == Op::kScratch) continue;  // It may never leave the caches.
    if (IsBuffer(u->op)) {
      work.bytes += static_cast<double>(u->buffer_size()) * ByteSize(u->dtype.scalar);
      continue;
    }
    uint64_t free = sets.Of(u);
    double cost = CostOf(u);
    bool flop = IsFlop(u) || u->op == Op::kScan;
    work.reduces = work.reduces || u->op == Op::kScan;
    if (u->op == Op::kReduce) {
      work.reduces = true;
      cost = 1;
      flop = true;
      free |= sets.Of(u->src(0));
      for (const UOp* r : u->src().subspan(1)) free |= sets.Bit(r);
    }
    const double times = chains.Iterations(chains.Around(free));
    work.cost += cost * times;
    if (flop) work.flops += times;
    if (u->op == Op::kReduce &&
        ((has_output_loops && sets.Of(u) == 0) || chains.InsideReduction(sets.Of(u)))) {
      work.serial_cost += cost * times;
    }
  }
  return work;
}

}  // namespace quern
