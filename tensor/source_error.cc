#include "tensor/source_error.h"

#include <algorithm>
#include <string>

#include "rewrite/concat.h"

namespace quern::notation {

absl::Status SourceError(std::string_view formula, SourceSpan where, std::string_view message) {
  const size_t at = std::min(formula.size(), static_cast<size_t>(std::max(where.begin, 0)));
  const size_t before = at == 0 ? std::string_view::npos : formula.rfind('\n', at - 1);
  const size_t line_begin = before == std::string_view::npos ? 0 : before + 1;
  const size_t line_end = std::min(formula.find('\n', at), formula.size());
  const std::string_view line = formula.substr(line_begin, line_end - line_begin);
  const auto line_number = 1 + std::count(formula.begin(), formula.begin() + line_begin, '\n');

  // Tabs are kept so that the caret lands below its character; continuation bytes of UTF-8 take no
  // column.
  std::string indent;
  size_t column = 1;
  for (char c : line.substr(0, at - line_begin)) {
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;
    indent += c == '\t' ? '\t' : ' ';
    ++column;
  }
  const size_t last = std::clamp(static_cast<size_t>(std::max(where.end, 0)), at, line_end);
  const std::string tail(last > at + 1 ? last - at - 1 : 0, '~');
  return absl::InvalidArgumentError(
      Concat(line_number, ":", column, ": ", message, "\n  ", line, "\n  ", indent, "^", tail));
}

}  // namespace quern::notation
