#ifndef QUERN_REWRITE_OUTSIDE_H_
#define QUERN_REWRITE_OUTSIDE_H_

#include "rewrite/graph.h"

namespace quern {

/// What a float load whose gate is false gives: a zero that remembers where it came from, in
/// `arg.b` of its kConst. Products and sums let what lies outside of an array take no part
/// (docs/semantics.md); for all else it is 0.
inline constexpr int64_t kOutsideFlag = 1;

inline const UOp* Outside(UOpGraph& graph, DType dtype) {
  return graph.Make(Op::kConst, dtype, {}, {0, kOutsideFlag});
}

inline bool IsOutside(const UOp* u) {
  if (u->op == Op::kBroadcast) u = u->src(0);
  return u->op == Op::kConst && u->arg.b == kOutsideFlag && IsFloat(u->dtype);
}

/// What a float product or sum of which a part lies outside is; nullptr if none does, or `u` is no
/// such thing.
inline const UOp* FoldOutside(UOpGraph& graph, const UOp* u) {
  if ((u->op != Op::kMul && u->op != Op::kAdd) || !IsFloat(u->dtype)) return nullptr;
  for (int i : {1, 0}) {
    if (!IsOutside(u->src(i))) continue;
    return u->op == Op::kMul ? Outside(graph, u->dtype) : u->src(1 - i);
  }
  return nullptr;
}

}  // namespace quern

#endif  // QUERN_REWRITE_OUTSIDE_H_
