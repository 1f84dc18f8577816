#ifndef QUERN_TENSOR_LEXER_H_
#define QUERN_TENSOR_LEXER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/source_error.h"

namespace quern::notation {

enum class TokenKind : uint8_t {
  kName,
  kInteger,
  kReal,    ///< a number with a point or an exponent
  kSymbol,  ///< one of [ ] ( ) , ; = == != < <= > >= + - * / // % & | !
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  ///< points into the formula
  SourceSpan span;
};

/// Cuts a formula into tokens; the last one is kEnd. Blanks and line ends separate tokens, `#`
/// begins a comment that lasts to the end of the line.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view formula);

}  // namespace quern::notation

#endif  // QUERN_TENSOR_LEXER_H_
