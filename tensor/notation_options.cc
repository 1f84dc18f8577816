#include <charconv>
#include <optional>
#include <utility>

#include "rewrite/concat.h"
#include "tensor/notation.h"

namespace quern {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The parts between commas; one empty part for an empty text.
std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t comma; (comma = text.find(',')) != std::string_view::npos;) {
    parts.push_back(Trim(text.substr(0, comma)));
    text.remove_prefix(comma + 1);
  }
  parts.push_back(Trim(text));
  return parts;
}

// "name=value" → both halves; the name may not be empty.
absl::StatusOr<std::pair<std::string, std::string_view>> SplitPair(std::string_view pair,
                                                                   std::string_view what) {
  const size_t equals = pair.find('=');
  const std::string_view name = Trim(pair.substr(0, equals));
  if (equals == std::string_view::npos || name.empty()) {
    return absl::InvalidArgumentError(Concat(what, " \"", pair, "\": it must read name=value"));
  }
  return std::make_pair(std::string(name), Trim(pair.substr(equals + 1)));
}

absl::StatusOr<int64_t> ParseExtent(std::string_view text, std::string_view what,
                                    std::string_view whole) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) {
    return absl::InvalidArgumentError(
        Concat(what, " \"", whole, "\": \"", text, "\" must be an integer that is not negative"));
  }
  return n;
}

}  // namespace

absl::Status ParseSizes(std::string_view text, NotationOptions& options) {
  for (std::string_view pair : SplitAtCommas(text)) {
    auto split = SplitPair(pair, "size");
    if (!split.ok()) return split.status();
    absl::StatusOr<int64_t> n = ParseExtent(split->second, "size", pair);
    if (!n.ok()) return n.status();
    const auto [it, fresh] = options.sizes.try_emplace(split->first, *n);
    if (!fresh && it->second != *n) {
      return absl::InvalidArgumentError(
          Concat("size ", split->first, " is given as ", it->second, " and as ", *n));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseDTypes(std::string_view text, NotationOptions& options) {
  for (std::string_view pair : SplitAtCommas(text)) {
    auto split = SplitPair(pair, "dtype");
    if (!split.ok()) return split.status();
    const std::optional<DType> t = ParseDType(split->second);
    if (!t || t->lanes != 1 || !(IsFloat(*t) || IsInteger(*t) || IsBool(*t))) {
      return absl::InvalidArgumentError(
          Concat("dtype \"", pair,
                 "\": must be one of f64 f32 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool"));
    }
    const auto [it, fresh] = options.dtypes.try_emplace(split->first, *t);
    if (!fresh && it->second != *t) {
      return absl::InvalidArgumentError(Concat("dtype ", split->first, " is given as ",
                                               DTypeName(it->second), " and as ", DTypeName(*t)));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseShape(std::string_view text, NotationOptions& options) {
  auto split = SplitPair(text, "shape");
  if (!split.ok()) return split.status();
  std::vector<int64_t> shape;
  if (!split->second.empty()) {
    for (std::string_view extent : SplitAtCommas(split->second)) {
      absl::StatusOr<int64_t> n = ParseExtent(extent, "shape", text);
      if (!n.ok()) return n.status();
      shape.push_back(*n);
    }
  }
  const auto [it, fresh] = options.shapes.try_emplace(split->first, shape);
  if (!fresh && it->second != shape) {
    return absl::InvalidArgumentError(
        Concat("shape of ", split->first, " is given twice, differently"));
  }
  return absl::OkStatus();
}

}  // namespace quern
