#ifndef QUERN_REWRITE_PSEUDO_CODE_H_
#define QUERN_REWRITE_PSEUDO_CODE_H_

#include <string>

#include "rewrite/uop.h"

namespace quern {

/// A kernel in any of its forms as a loop nest for people:
///
///     param f32 p0[12]
///     param f32 p1[3]
///     for i0 in 3:
///       t0 = 0
///       for k1 in 4 (REDUCE):
///         t0 += p0[i0 * 4 + k1]
///       p1[i0] = t0
///
/// Loops stand in the order of their axis numbers; every axis type but LOOP is named. A REDUCE is
/// shown as an accumulation, at the outermost loop where its own ranges are known. Long values that
/// are used more than once have names. `x if g` is a gated access; `//` and `%` round to minus
/// infinity. Nothing parses this; text.h has the form that can be read back.
///
/// What is no kernel gives a comment that says why.
std::string PseudoCode(const UOp* sink);

/// One value as an expression, for messages: "p0[i0 * 4 + k1] + 1.5". Long ones are cut short.
std::string ExpressionText(const UOp* value);

}  // namespace quern

#endif  // QUERN_REWRITE_PSEUDO_CODE_H_
