#ifndef QUERN_TENSOR_PARSER_H_
#define QUERN_TENSOR_PARSER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/syntax.h"

namespace quern::notation {

/// Parses index notation (the grammar is in docs/index_notation.md) without looking at what the
/// names mean: sizes, types and shapes come later.
absl::StatusOr<Formula> ParseFormula(std::string_view text);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_PARSER_H_
