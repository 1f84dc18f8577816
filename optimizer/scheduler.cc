#include "optimizer/scheduler.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/matrix_instructions.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/kernel_flags.h"
#include "rewrite/range_sets.h"
#include "rewrite/scan.h"
#include "rewrite/simplify.h"
#include "rewrite/temporaries.h"
#include "rewrite/verify.h"

namespace quern {
namespace {

// Elements that one statement may keep in registers, all copies together. What lies above is not
// fast on any machine and takes seconds to compile; the search has tighter limits.
constexpr int64_t kMaxRegisterElements = 8192;
constexpr int64_t kMaxPadFactor = 4;

absl::Status Refuse(const Action& action, std::string_view why) {
  return absl::FailedPreconditionError(Concat(ActionToString(action), ": ", why));
}

absl::flat_hash_set<const UOp*> ReducedRanges(const UOp* kernel) {
  absl::flat_hash_set<const UOp*> reduced;
  for (const UOp* u : Toposort(kernel)) {
    if (u->op != Op::kReduce) continue;
    for (const UOp* r : u->src().subspan(1)) reduced.insert(r);
  }
  return reduced;
}

bool CountsReduceAxes(ActionKind kind) {
  return kind == ActionKind::kUnroll || kind == ActionKind::kGroup ||
         kind == ActionKind::kGroupTop || kind == ActionKind::kTensorCore;
}

// Whether a value is 0 where nothing is read that depends on `range`, given which of its sources
// are. A product of floats needs two zeros: the other factor may be infinite.
bool IsZeroOutside(const UOp* u, const RangeSets& sets, const UOp* range,
                   const absl::flat_hash_set<const UOp*>& zero) {
  switch (u->op) {
    case Op::kLoad:
      return sets.Depends(u->src(0), range);
    case Op::kCast:
      return zero.contains(u->src(0));
    case Op::kMul: {
      const int zeros = (zero.contains(u->src(0)) ? 1 : 0) + (zero.contains(u->src(1)) ? 1 : 0);
      return zeros >= (IsFloat(u->dtype) ? 2 : 1);
    }
    default:
      return false;
  }
}

std::string Describe(const Axis& axis, int number) {
  return Concat("axis ", number, " (", AxisTypeName(axis.type), " of ", axis.size, ")");
}

}  // namespace

Scheduler::Scheduler(UOpGraph& graph, const UOp* kernel, const Target& target)
    : graph_(&graph), kernel_(kernel), target_(&target) {
  Refresh();
}

bool Scheduler::no_locals() const { return (kernel_->arg.a & kNoLocalsFlag) != 0; }

void Scheduler::Refresh() {
  const absl::flat_hash_set<const UOp*> reduced = ReducedRanges(kernel_);
  const RangeSets sets(kernel_);
  axes_.clear();
  reduce_axes_.clear();
  for (const UOp* r : sets.ranges()) {
    const Axis axis = {r, r->range_size(), r->range_type(), reduced.contains(r)};
    if (axis.reduce && axis.type != AxisType::kUnroll && axis.type != AxisType::kWarp) {
      reduce_axes_.push_back(static_cast<int>(axes_.size()));
    }
    axes_.push_back(axis);
  }
}

absl::StatusOr<int> Scheduler::FindAxis(const Action& action) const {
  if (CountsReduceAxes(action.kind)) {
    if (action.axis < 0 || action.axis >= static_cast<int>(reduce_axes_.size())) {
      return Refuse(action, Concat("there is no reduce axis ", action.axis, "; there are ",
                                   reduce_axes_.size()));
    }
    return reduce_axes_[action.axis];
  }
  if (action.axis < 0 || action.axis >= static_cast<int>(axes_.size())) {
    return Refuse(action, Concat("there is no axis ", action.axis, "; there are ", axes_.size()));
  }
  return action.axis;
}

absl::StatusOr<int64_t> Scheduler::FindAmount(const Action& action, const Axis& axis) const {
  if (action.amount < 0) {
    return Refuse(action, Concat("the amount ", action.amount, " is negative"));
  }
  const int64_t amount = action.amount == 0 ? axis.size : action.amount;
  if (amount < 2) return Refuse(action, Concat("an amount of ", amount, " changes nothing"));
  if (axis.size % amount != 0) {
    return Refuse(action, Concat(amount, " does not divide the size ", axis.size));
  }
  return amount;
}

int64_t Scheduler::RegisterElements(const UOp* range) const {
  const RangeSets sets(kernel_);
  int64_t most = 0;
  for (const UOp* u : Toposort(kernel_)) {
    uint64_t set = 0;
    if (u->op == Op::kReduce) {
      set = sets.Of(u);
      for (const UOp* r : u->src().subspan(1)) set |= sets.Bit(r);
    } else if (u->op == Op::kStore) {
      set = sets.Of(u);
    }
    if (range != nullptr && (set & sets.Bit(range)) == 0) continue;
    int64_t elements = 1;
    for (const UOp* r : sets.Members(set)) {
      if (IsRegisterAxis(r->range_type())) elements *= r->range_size();
    }
    most = std::max(most, elements);
  }
  return most;
}

absl::Status Scheduler::CheckRegisters(const Axis& axis, int64_t amount, AxisType type) const {
  const int64_t most = amount * RegisterElements(axis.range);
  if (most <= kMaxRegisterElements) return absl::OkStatus();
  return absl::FailedPreconditionError(Concat("a statement would have ", most,
                                              " elements in registers (as ", AxisTypeName(type),
                                              "); the limit is ", kMaxRegisterElements));
}

absl::Status Scheduler::Check(const Action& action, int number, int64_t amount) const {
  const Axis& axis = axes_[number];
  const std::string what = Describe(axis, number);
  if (IsRegisterAxis(axis.type)) {
    return Refuse(action, Concat(what, " is in registers already"));
  }
  AxisType registers = AxisType::kLoop;
  switch (action.kind) {
    case ActionKind::kUpcast:
      if (axis.reduce) return Refuse(action, Concat(what, " is reduced; UNROLL it"));
      if (axis.type == AxisType::kThread) return Refuse(action, Concat(what, " is threads"));
      registers = AxisType::kUpcast;
      break;
    case ActionKind::kUnroll:
    case ActionKind::kGroup:
      if (axis.type == AxisType::kThread) return Refuse(action, Concat(what, " is threads"));
      registers = action.kind == ActionKind::kUnroll ? AxisType::kUnroll : AxisType::kGroupReduce;
      break;
    case ActionKind::kGroupTop:
      if (axis.type != AxisType::kReduce) {
        return Refuse(action, Concat(what, " is cut into blocks already"));
      }
      break;
    case ActionKind::kLocal:
      if (no_locals()) return Refuse(action, "NOLOCALS forbids it");
      if (axis.reduce || axis.type != AxisType::kLoop) {
        return Refuse(action, Concat(what, " is not an output loop"));
      }
      break;
    case ActionKind::kThread: {
      if (axis.reduce && axis.type != AxisType::kGroupTop) {
        return Refuse(action, Concat(what, " is reduced; cut it with GROUPTOP first"));
      }
      if (!axis.reduce && axis.type != AxisType::kLoop) {
        return Refuse(action, Concat(what, " is not an output loop"));
      }
      for (const Axis& other : axes_) {
        if (other.type == AxisType::kThread)
          return Refuse(action, "the kernel has threads already");
      }
      // What is scanned may be cut finer: its phases run part by part, in cached data.
      constexpr int64_t kMostParts = 65536;
      if (amount > (IsScanned(kernel_, axis.range) ? kMostParts : target_->cores)) {
        return Refuse(action, Concat(amount, " threads on ", target_->cores, " cores"));
      }
      const RangeSets sets(kernel_);
      for (const UOp* store : kernel_->src()) {
        if (!axis.reduce && !sets.Depends(store, axis.range)) {
          return Refuse(action, Concat(what, " is not an axis of every output"));
        }
      }
      if (HasTemporaries(kernel_)) {
        // Threads have temporaries of their own, and each reads what it has written itself.
        const std::vector<const UOp*> shared = SharedRanges(kernel_);
        if (std::find(shared.begin(), shared.end(), axis.range) == shared.end()) {
          return Refuse(action, Concat(what, " is not shared by all that use a temporary"));
        }
      }
      break;
    }
    default:
      break;
  }
  if (registers != AxisType::kLoop) {
    if (absl::Status s = CheckRegisters(axis, amount, registers); !s.ok()) {
      return Refuse(action, std::string(s.message()));
    }
  }
  return absl::OkStatus();
}

// Gives the ranges of `order` the numbers 0, 1, …; `replaced` (may be nullptr) becomes `value`, an
// expression of ranges in `order`.
void Scheduler::Renumber(const std::vector<const UOp*>& order, const UOp* replaced,
                         const UOp* value) {
  std::vector<const UOp*> from;
  std::vector<const UOp*> to;
  for (size_t i = 0; i < order.size(); ++i) {
    from.push_back(order[i]);
    to.push_back(
        Range(*graph_, order[i]->range_size(), static_cast<int>(i), order[i]->range_type()));
  }
  if (replaced != nullptr) {
    value = Substitute(*graph_, value, from, to);
    from.push_back(replaced);
    to.push_back(value);
  }
  // A REDUCE that closed the old range closes all the ranges of its value, and a SCAN counts
  // through them.
  absl::flat_hash_map<const UOp*, const UOp*> done;
  for (size_t i = 0; i < from.size(); ++i) done[from[i]] = to[i];
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(kernel_)) {
    if (done.contains(u)) continue;
    sources.clear();
    for (size_t i = 0; i < u->source_count; ++i) {
      const UOp* s = done.at(u->src(i));
      const bool closes = u->op == Op::kReduce || u->op == Op::kScan;
      if (closes && i > 0 && s->op != Op::kRange) {
        for (const UOp* r : SlowestFirst(s)) sources.push_back(r);
      } else {
        sources.push_back(s);
      }
    }
    done[u] = WithSources(*graph_, u, sources);
  }
  kernel_ = done.at(kernel_);
}

void Scheduler::ApplySplit(int number, int64_t amount, const Split& split) {
  const Axis axis = axes_[number];
  const int64_t rest = axis.size / amount;
  // Numbers that no axis has keep the two parts apart until they are renumbered.
  const int unused = axes_.back().range->range_axis() + 1;
  const UOp* fresh = Range(*graph_, amount, unused, split.type);
  std::vector<const UOp*> order;
  for (const Axis& a : axes_) order.push_back(a.range);
  const UOp* value = fresh;
  if (rest == 1) {
    order.erase(order.begin() + number);
    const int position = split.position > number ? split.position - 1 : split.position;
    order.insert(order.begin() + position, fresh);
  } else {
    const UOp* kept = Range(*graph_, rest, unused + 1, axis.type);
    order[number] = kept;
    order.insert(order.begin() + split.position, fresh);
    const UOp* outer = split.outer_is_new ? fresh : kept;
    const UOp* inner = split.outer_is_new ? kept : fresh;
    value = Add(*graph_, Mul(*graph_, outer, IndexConst(*graph_, inner->range_size())), inner);
  }
  Renumber(order, axis.range, value);
}

absl::Status Scheduler::ApplySwap(const Action& action) {
  const int64_t other = action.amount;
  if (other < 0 || other >= static_cast<int64_t>(axes_.size())) {
    return Refuse(action, Concat("there is no axis ", other, "; there are ", axes_.size()));
  }
  if (other == action.axis) return Refuse(action, "an axis is not swapped with itself");
  for (int64_t number : {int64_t{action.axis}, other}) {
    const Axis& axis = axes_[number];
    if (IsRegisterAxis(axis.type) || axis.type == AxisType::kThread) {
      return Refuse(action, Concat(Describe(axis, static_cast<int>(number)), " is not a loop"));
    }
  }
  std::vector<const UOp*> order;
  for (const Axis& a : axes_) order.push_back(a.range);
  std::swap(order[action.axis], order[other]);
  Renumber(order, nullptr, nullptr);
  return absl::OkStatus();
}

absl::Status Scheduler::ApplyPad(const Action& action) {
  const Axis axis = axes_[action.axis];
  const std::string what = Describe(axis, action.axis);
  if (action.amount < 2) return Refuse(action, "the amount must be 2 or more");
  if (IsRegisterAxis(axis.type)) {
    return Refuse(action, Concat(what, " is in registers already"));
  }
  if (axis.type == AxisType::kThread) return Refuse(action, Concat(what, " is threads"));
  if (axis.size == 0) return Refuse(action, Concat(what, " is empty"));
  const int64_t padded = (axis.size + action.amount - 1) / action.amount * action.amount;
  if (padded == axis.size) {
    return Refuse(action, Concat(what, " is a multiple of ", action.amount, " already"));
  }
  if (padded > kMaxPadFactor * axis.size) {
    return Refuse(action,
                  Concat(what, " would become ", padded, ", more than four times the work"));
  }
  // Where the padding is, nothing is read or written and reductions get their identity.
  const UOp* wide = Range(*graph_, padded, axis.range->range_axis(), axis.type);
  const UOp* inside = Lt(*graph_, wide, IndexConst(*graph_, axis.size));
  const RangeSets sets(kernel_);
  absl::flat_hash_map<const UOp*, const UOp*> done;
  absl::flat_hash_set<const UOp*> zero_outside;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(kernel_)) {
    if (u == axis.range) {
      done[u] = wide;
      continue;
    }
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(done.at(s));
    if (u->op == Op::kIndex && sets.Depends(u, axis.range)) {
      const UOp* gate = sources.size() == 3 ? And(*graph_, sources[2], inside) : inside;
      sources.resize(2);
      sources.push_back(gate);
    }
    if (IsZeroOutside(u, sets, axis.range, zero_outside)) zero_outside.insert(u);
    const bool combines = u->op == Op::kReduce || u->op == Op::kScan;
    const bool sums_zeros =
        combines && u->reduce_op() == Op::kAdd && zero_outside.contains(u->src(0));
    if (combines && !sums_zeros &&
        std::find(sources.begin() + 1, sources.end(), wide) != sources.end()) {
      sources[0] =
          Where(*graph_, inside, sources[0], ReduceIdentity(*graph_, u->reduce_op(), u->dtype));
    }
    done[u] = u->op == Op::kIndex ? graph_->Make(u->op, u->dtype, sources, u->arg)
                                  : WithSources(*graph_, u, sources);
  }
  kernel_ = done.at(kernel_);
  return absl::OkStatus();
}

absl::Status Scheduler::ApplyTensorCore(const Action& action, int number) {
  const Axis axis = axes_[number];
  if (axis.type != AxisType::kReduce) {
    return Refuse(action, Concat(Describe(axis, number), " is no plain reduce loop"));
  }
  for (const Axis& other : axes_) {
    if (other.type == AxisType::kWarp) return Refuse(action, "the kernel uses matrix instructions");
  }
  absl::StatusOr<MatrixFactors> factors = absl::NotFoundError("the axis is not reduced");
  for (const UOp* u : Toposort(kernel_)) {
    if (u->op != Op::kReduce) continue;
    const std::span<const UOp* const> ranges = u->src().subspan(1);
    if (std::find(ranges.begin(), ranges.end(), axis.range) == ranges.end()) continue;
    if (u->reduce_op() != Op::kAdd) return Refuse(action, "the reduction is no sum");
    factors = MatchMatrixProduct(u->src(0), *target_);
    if (!factors.ok()) return Refuse(action, std::string(factors.status().message()));
  }
  if (!factors.ok()) return Refuse(action, std::string(factors.status().message()));
  const int group = MatrixInstructions()[factors->instruction].group;
  if (axis.size % group != 0) {
    return Refuse(action, Concat("the size ", axis.size, " is no multiple of ", group));
  }
  Split split;
  split.type = AxisType::kWarp;
  split.position = static_cast<int>(axes_.size());
  ApplySplit(number, group, split);
  return absl::OkStatus();
}

absl::Status Scheduler::Transform(const Action& action) {
  if (action.kind == ActionKind::kNoLocals) {
    if (no_locals()) return Refuse(action, "it holds already");
    for (const Axis& a : axes_) {
      if (a.type == AxisType::kLocal) return Refuse(action, "the kernel has LOCAL axes already");
    }
    kernel_ = graph_->Make(Op::kSink, kVoidType, kernel_->src(),
                           {kernel_->arg.a | kNoLocalsFlag, kernel_->arg.b});
    return absl::OkStatus();
  }
  absl::StatusOr<int> number = FindAxis(action);
  if (!number.ok()) return number.status();
  if (action.kind == ActionKind::kTensorCore) return ApplyTensorCore(action, *number);
  if (action.kind == ActionKind::kSwap || action.kind == ActionKind::kPadTo) {
    return action.kind == ActionKind::kSwap ? ApplySwap(action) : ApplyPad(action);
  }
  absl::StatusOr<int64_t> amount = FindAmount(action, axes_[*number]);
  if (!amount.ok()) return amount.status();
  if (absl::Status status = Check(action, *number, *amount); !status.ok()) return status;

  Split split;
  split.position = *number;
  switch (action.kind) {
    case ActionKind::kUpcast:
      split.type = AxisType::kUpcast;
      split.position = static_cast<int>(axes_.size());
      while (split.position > 0 && (axes_[split.position - 1].type == AxisType::kUnroll ||
                                    axes_[split.position - 1].type == AxisType::kWarp)) {
        --split.position;
      }
      break;
    case ActionKind::kUnroll:
      split.type = AxisType::kUnroll;
      split.position = static_cast<int>(axes_.size());
      break;
    case ActionKind::kGroup:
      split.type = AxisType::kGroupReduce;
      break;
    case ActionKind::kGroupTop:
      split.type = AxisType::kGroupTop;
      split.outer_is_new = true;
      break;
    case ActionKind::kThread:
      split.type = AxisType::kThread;
      split.outer_is_new = true;
      split.position = 0;
      break;
    default:  // LOCAL: a tile begins after the output loops around the next reduction.
      split.type = AxisType::kLocal;
      split.position = *number + 1;
      while (split.position < static_cast<int>(axes_.size()) && !axes_[split.position].reduce &&
             !IsRegisterAxis(axes_[split.position].type)) {
        ++split.position;
      }
  }
  ApplySplit(*number, *amount, split);
  return absl::OkStatus();
}

absl::Status Scheduler::Apply(const Action& action) {
  const UOp* before = kernel_;
  if (absl::Status s = Transform(action); !s.ok()) return s;
  // Splitting a range keeps every access where it was, but the proof of that may be too hard; then
  // the kernel could not be run.
  if (absl::Status s = VerifyKernel(Simplify(*graph_, kernel_)); !s.ok()) {
    kernel_ = before;
    return Refuse(action, Concat("the result cannot be proved: ", s.message()));
  }
  Refresh();
  actions_.push_back(action);
  return absl::OkStatus();
}

absl::Status Scheduler::ApplyAll(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (absl::Status status = Apply(action); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace quern
