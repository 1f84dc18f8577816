#ifndef QUERN_TENSOR_SOURCE_ERROR_H_
#define QUERN_TENSOR_SOURCE_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

namespace quern::notation {

/// Characters [begin, end) of a formula.
struct SourceSpan {
  int begin = 0;
  int end = 0;
};

/// An InvalidArgument error that shows the line of the formula with a caret under the span:
///
///     1:19: k is neither an index of C nor reduced over here
///       C[i,j] = A[i,k]*B[k,j]
///                    ^
absl::Status SourceError(std::string_view formula, SourceSpan where, std::string_view message);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_SOURCE_ERROR_H_
