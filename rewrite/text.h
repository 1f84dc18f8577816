#ifndef QUERN_REWRITE_TEXT_H_
#define QUERN_REWRITE_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rewrite/graph.h"

namespace quern {

// The text form of a graph (`.uop`): one node a line, sources before users, the root last.
//
//     # out[i] = sum over k of a[4·i + k]
//     %0 = param.f32 slot=1 size=2
//     %1 = range.index size=2 axis=0 type=LOOP
//     %2 = index.f32 %0, %1
//     %3 = param.f32 slot=0 size=8
//     %4 = const.index 4
//     %5 = mul.index %1, %4
//     %6 = range.index size=4 axis=1 type=REDUCE
//     %7 = add.index %5, %6
//     %8 = index.f32 %3, %7
//     %9 = load.f32 %8
//     %10 = reduce.f32 op=add %9, %6
//     %11 = store %2, %10
//     %12 = sink %11
//
// Statements have no dtype. A `#` begins a comment.

/// Writes `root` and all that it uses. Floats are written with as many digits as it takes to read
/// back the same value; infinities and NaN as `inf`, `-inf`, `nan`.
std::string ToText(const UOp* root);

/// Reads the text form into `graph` and returns the node of the last line. Every node is verified
/// (verify_node.h), so what is returned can be printed, verified and interpreted. Errors name line
/// and column.
absl::StatusOr<const UOp*> ParseText(UOpGraph& graph, std::string_view text);

}  // namespace quern

#endif  // QUERN_REWRITE_TEXT_H_
