#include "tensor/lexer.h"

#include "absl/strings/ascii.h"
#include "rewrite/concat.h"

namespace quern::notation {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Longest first, so that `//` is not two divisions.
constexpr std::string_view kSymbols[] = {"==", "!=", "<=", ">=", "//", "[", "]", "(",
                                         ")",  ",",  ";",  "=",  "<",  ">", "+", "-",
                                         "*",  "/",  "%",  "&",  "|",  "!"};

// The length of the number at the start of `text`, and whether it is an integer.
size_t NumberLength(std::string_view text, bool* integer) {
  size_t n = 0;
  *integer = true;
  const auto digits = [&] {
    while (n < text.size() && absl::ascii_isdigit(text[n])) ++n;
  };
  digits();
  if (n < text.size() && text[n] == '.') {
    *integer = false;
    ++n;
    digits();
  }
  if (n < text.size() && (text[n] == 'e' || text[n] == 'E')) {
    size_t sign = n + 1 < text.size() && (text[n + 1] == '+' || text[n + 1] == '-') ? 1 : 0;
    if (n + 1 + sign < text.size() && absl::ascii_isdigit(text[n + 1 + sign])) {
      *integer = false;
      n += 1 + sign;
      digits();
    }
  }
  return n;
}

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view formula) {
  std::vector<Token> tokens;
  size_t at = 0;
  const auto push = [&](TokenKind kind, size_t length) {
    tokens.push_back(
        {kind, formula.substr(at, length), {static_cast<int>(at), static_cast<int>(at + length)}});
    at += length;
  };
  if (formula.size() > (1 << 20)) {
    return absl::InvalidArgumentError(
        Concat("a formula of ", formula.size(), " characters; at most 1048576 are allowed"));
  }
  while (at < formula.size()) {
    const char c = formula[at];
    if (absl::ascii_isspace(c)) {
      ++at;
    } else if (c == '#') {
      while (at < formula.size() && formula[at] != '\n') ++at;
    } else if (IsNameStart(c)) {
      size_t n = 1;
      while (at + n < formula.size() && IsNamePart(formula[at + n])) ++n;
      push(TokenKind::kName, n);
    } else if (absl::ascii_isdigit(c) ||
               (c == '.' && at + 1 < formula.size() && absl::ascii_isdigit(formula[at + 1]))) {
      bool integer;
      const size_t n = NumberLength(formula.substr(at), &integer);
      const size_t end = at + n;
      if (end < formula.size() && (IsNamePart(formula[end]) || formula[end] == '.')) {
        return SourceError(formula, {static_cast<int>(at), static_cast<int>(end + 1)},
                           "a number must not run into what follows it");
      }
      push(integer ? TokenKind::kInteger : TokenKind::kReal, n);
    } else {
      size_t n = 0;
      for (std::string_view symbol : kSymbols) {
        if (formula.substr(at, symbol.size()) == symbol) {
          n = symbol.size();
          break;
        }
      }
      if (n == 0) {
        return SourceError(formula, {static_cast<int>(at), static_cast<int>(at + 1)},
                           "no part of a formula begins with this character");
      }
      push(TokenKind::kSymbol, n);
    }
  }
  push(TokenKind::kEnd, 0);
  return tokens;
}

}  // namespace quern::notation
