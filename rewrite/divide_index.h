#ifndef QUERN_REWRITE_DIVIDE_INDEX_H_
#define QUERN_REWRITE_DIVIDE_INDEX_H_

#include "rewrite/native_rule.h"

namespace quern {

inline bool IsDivMod(const UOp* u) { return u->op == Op::kFloorDiv || u->op == Op::kFloorMod; }
inline bool IsPositiveConst(const UOp* u) { return u->IsConst() && u->IntValue() > 0; }

/// A floordiv or floormod of Index by a constant in a simpler form, nullptr if there is none.
///
/// The dividend is a sum; what the divisor divides leaves the quotient (and vanishes from the
/// remainder), common factors are cancelled, and a part that is too small to matter is dropped:
/// with y in [0, 4), (4·x + y) div 8 is x div 2 and (4·x + y) mod 8 is 4·(x mod 2) + y.
const UOp* DivideIndex(const UOp* u, RuleContext& context);

}  // namespace quern

#endif  // QUERN_REWRITE_DIVIDE_INDEX_H_
