#include "driver/npy_header.h"

#include <bit>
#include <charconv>
#include <optional>

#include "rewrite/concat.h"

namespace quern {
namespace {

static_assert(std::endian::native == std::endian::little, "data is written as little-endian");

struct TypeRow {
  std::string_view code;  // as NumPy writes it, without the byte order
  ScalarType scalar;
};
constexpr TypeRow kTypes[] = {
    {"f8", ScalarType::kF64},  {"f4", ScalarType::kF32}, {"f2", ScalarType::kF16},
    {"V2", ScalarType::kBF16}, {"i1", ScalarType::kI8},  {"i2", ScalarType::kI16},
    {"i4", ScalarType::kI32},  {"i8", ScalarType::kI64}, {"u1", ScalarType::kU8},
    {"u2", ScalarType::kU16},  {"u4", ScalarType::kU32}, {"u8", ScalarType::kU64},
    {"b1", ScalarType::kBool},
};

absl::Status Bad(std::string_view message) { return absl::InvalidArgumentError(Concat(message)); }

// Reads the one form of Python literal that NumPy writes.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Run() {
    NpyHeader header;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    if (!Take('{')) return Bad("the header is not a dictionary");
    while (!Take('}')) {
      const std::optional<std::string_view> key = TakeString();
      if (!key || !Take(':')) return Bad("the header is not a dictionary of names");
      absl::Status s;
      if (*key == "descr") {
        seen_descr = true;
        s = ReadDescr(header);
      } else if (*key == "fortran_order") {
        seen_order = true;
        s = ReadOrder(header);
      } else if (*key == "shape") {
        seen_shape = true;
        s = ReadShape(header);
      } else {
        s = Bad(Concat("unknown key '", *key, "' in the header"));
      }
      if (!s.ok()) return s;
      if (!Take(',') && !Is('}')) return Bad("a comma is missing in the header");
    }
    if (!seen_descr || !seen_order || !seen_shape) {
      return Bad("the header lacks 'descr', 'fortran_order' or 'shape'");
    }
    return header;
  }

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool Is(char c) {
    SkipBlanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool Take(char c) {
    if (!Is(c)) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string_view> TakeString() {
    if (!Is('\'') && !Is('"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }

  absl::Status ReadDescr(NpyHeader& header) {
    if (Is('[')) return Bad("structured arrays are not supported");
    const std::optional<std::string_view> descr = TakeString();
    if (!descr) return Bad("'descr' is not a string");
    std::string_view code = *descr;
    if (!code.empty() && std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
      header.big_endian = code[0] == '>';
      code.remove_prefix(1);
    }
    for (const TypeRow& row : kTypes) {
      if (row.code != code && !(row.scalar == ScalarType::kBF16 && code == "bfloat16")) continue;
      header.dtype = row.scalar;
      return absl::OkStatus();
    }
    return Bad(Concat("type '", *descr,
                      "' is not supported (f8 f4 f2 i1…i8 u1…u8 b1, and V2 for bfloat16 are)"));
  }

  absl::Status ReadOrder(NpyHeader& header) {
    header.fortran_order = TakeWord("True");
    if (header.fortran_order || TakeWord("False")) return absl::OkStatus();
    return Bad("'fortran_order' is neither True nor False");
  }

  absl::Status ReadShape(NpyHeader& header) {
    if (!Take('(')) return Bad("'shape' is not a tuple");
    while (!Take(')')) {
      SkipBlanks();
      int64_t extent = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) return Bad("'shape' holds something else than sizes");
      at_ = static_cast<size_t>(end - text_.data());
      TakeWord("L");  // Python 2 wrote long integers so.
      header.shape.push_back(extent);
      if (!Take(',') && !Is(')')) return Bad("'shape' is not a tuple");
    }
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text) {
  return DictionaryReader(text).Run();
}

std::string FormatNpyHeader(const NpyHeader& header) {
  std::string text = "{'descr': '";
  for (const TypeRow& row : kTypes) {
    if (row.scalar != header.dtype.scalar) continue;
    Append(text, ByteSize(row.scalar) == 1 ? "|" : "<", row.code);
  }
  Append(text, "', 'fortran_order': ", header.fortran_order ? "True" : "False", ", 'shape': (");
  for (size_t i = 0; i < header.shape.size(); ++i) {
    Append(text, i == 0 ? "" : " ", header.shape[i],
           header.shape.size() == 1 || i + 1 < header.shape.size() ? "," : "");
  }
  Append(text, "), }");
  return text;
}

}  // namespace quern
