#include "rewrite/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "rewrite/verify_node.h"

namespace quern {
namespace {

// What the two members of Arg are called in the text, and how they are spelled.
enum class Spelling : uint8_t { kInteger, kCombiningOp };
struct ArgNames {
  std::string_view a;
  std::string_view b;
  Spelling spelling_a = Spelling::kInteger;
  bool required = false;  ///< else left out where both are 0
};

ArgNames NamesOf(Op op) {
  switch (op) {
    case Op::kParam:
    case Op::kScratch:
    case Op::kRegister:
      return {"slot", "size", Spelling::kInteger, true};
    case Op::kReduce:
      return {"op", "", Spelling::kCombiningOp, true};
    case Op::kHorizontal:
      return {"op", "lanes", Spelling::kCombiningOp, true};
    case Op::kScan:
    case Op::kPrefix:
      return {"op", "flags", Spelling::kCombiningOp, true};
    case Op::kExtract:
      return {"lane", "", Spelling::kInteger, true};
    case Op::kLoad:
      return {"prefetch", "again"};
    case Op::kInterleave:
      return {"group", ""};
    case Op::kTile:
      return {"number", "rows", Spelling::kInteger, true};
    case Op::kMatrix:
      return {"number", "", Spelling::kInteger, true};
    default:
      return {"a", "b"};
  }
}

std::string FloatText(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  // The shortest digits that read back as the same float are fewer than those of the double.
  const std::to_chars_result end =
      dtype.scalar == ScalarType::kF64
          ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value)
          : std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<float>(value));
  return std::string(buffer.data(), end.ptr);
}

std::string ConstText(const UOp* u) {
  if (IsFloat(u->dtype)) return FloatText(u->dtype, u->FloatValue());
  if (IsBool(u->dtype)) return u->IntValue() != 0 ? "true" : "false";
  if (u->dtype.scalar == ScalarType::kU64) return Concat(static_cast<uint64_t>(u->IntValue()));
  return Concat(u->IntValue());
}

std::string ArgText(const UOp* u) {
  if (u->op == Op::kConst) return Concat(" ", ConstText(u));
  if (u->op == Op::kRange) {
    return Concat(" size=", u->range_size(), " axis=", u->range_axis(),
                  " type=", AxisTypeName(u->range_type()));
  }
  const ArgNames names = NamesOf(u->op);
  if (!names.required && u->arg == Arg{}) return "";
  std::string text = names.spelling_a == Spelling::kCombiningOp
                         ? Concat(" ", names.a, "=", OpName(static_cast<Op>(u->arg.a)))
                         : Concat(" ", names.a, "=", u->arg.a);
  if (!names.b.empty()) Append(text, " ", names.b, "=", u->arg.b);
  return text;
}

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Reads one line from left to right.
struct Cursor {
  std::string_view line;
  int number;
  size_t at = 0;

  absl::Status Error(std::string_view why) const { return ErrorAt(at, why); }
  absl::Status ErrorAt(size_t where, std::string_view why) const {
    return absl::InvalidArgumentError(Concat("line ", number, ", column ", where + 1, ": ", why));
  }
  void SkipSpace() {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
  }
  bool AtEnd() {
    SkipSpace();
    return at == line.size();
  }
  bool Take(char c) {
    SkipSpace();
    if (at == line.size() || line[at] != c) return false;
    ++at;
    return true;
  }
  // Letters, digits and underscores; empty if there are none.
  std::string_view Word() {
    const size_t begin = at;
    while (at < line.size() && IsWordChar(line[at])) ++at;
    return line.substr(begin, at - begin);
  }
  // Everything up to a space or a comma.
  std::string_view Token() {
    SkipSpace();
    const size_t begin = at;
    while (at < line.size() && line[at] != ' ' && line[at] != '\t' && line[at] != '\r' &&
           line[at] != ',') {
      ++at;
    }
    return line.substr(begin, at - begin);
  }
};

template <typename T>
bool ReadNumber(std::string_view token, T* value) {
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), *value);
  return error == std::errc() && end == token.data() + token.size();
}

bool ReadFloat(DType dtype, std::string_view token, double* value) {
  if (dtype.scalar == ScalarType::kF64) return ReadNumber(token, value);
  // Straight to float: by way of double some decimal numbers would be rounded twice.
  float narrow = 0;
  if (!ReadNumber(token, &narrow)) return false;
  *value = narrow;
  return true;
}

absl::StatusOr<Arg> ParseConst(Cursor& cursor, DType dtype) {
  const size_t begin = cursor.at + 1;
  const std::string_view token = cursor.Token();
  if (IsFloat(dtype)) {
    double value = 0;
    if (!ReadFloat(dtype, token, &value)) {
      return cursor.ErrorAt(begin, Concat("'", token, "' is no number of type ", DTypeName(dtype)));
    }
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    return Arg{std::bit_cast<int64_t>(RoundFloat(dtype.scalar, value)), 0};
  }
  if (IsBool(dtype) && (token == "true" || token == "false")) return Arg{token == "true", 0};
  int64_t value = 0;
  uint64_t bits = 0;
  if (dtype.scalar == ScalarType::kU64 && ReadNumber(token, &bits)) {
    return Arg{static_cast<int64_t>(bits), 0};
  }
  if (dtype.scalar == ScalarType::kVoid || IsBool(dtype) || !ReadNumber(token, &value) ||
      WrapInteger(dtype.scalar, value) != value || dtype.scalar == ScalarType::kU64) {
    return cursor.ErrorAt(begin, Concat("'", token, "' is no value of type ", DTypeName(dtype)));
  }
  return Arg{value, 0};
}

// `name=` and the value up to the next space.
absl::StatusOr<std::string_view> ParseAttribute(Cursor& cursor, std::string_view name) {
  cursor.SkipSpace();
  const size_t begin = cursor.at;
  if (cursor.Word() != name || !cursor.Take('=')) {
    return cursor.ErrorAt(begin, Concat("expected ", name, "=…"));
  }
  return cursor.Token();
}

absl::Status ParseInteger(Cursor& cursor, std::string_view name, int64_t* value) {
  absl::StatusOr<std::string_view> token = ParseAttribute(cursor, name);
  if (!token.ok()) return token.status();
  if (!ReadNumber(*token, value)) {
    return cursor.ErrorAt(cursor.at - token->size(), Concat("'", *token, "' is no integer"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Arg> ParseRange(Cursor& cursor) {
  int64_t size = 0;
  int64_t axis = 0;
  if (absl::Status s = ParseInteger(cursor, "size", &size); !s.ok()) return s;
  if (absl::Status s = ParseInteger(cursor, "axis", &axis); !s.ok()) return s;
  if (axis < 0 || axis > std::numeric_limits<int>::max()) return cursor.Error("no such axis");
  absl::StatusOr<std::string_view> token = ParseAttribute(cursor, "type");
  if (!token.ok()) return token.status();
  const std::optional<AxisType> type = ParseAxisType(*token);
  if (!type.has_value()) {
    return cursor.ErrorAt(cursor.at - token->size(), Concat("'", *token, "' is no axis type"));
  }
  return RangeArg(size, static_cast<int>(axis), *type);
}

absl::StatusOr<Arg> ParseArg(Cursor& cursor, Op op, DType dtype) {
  if (op == Op::kConst) return ParseConst(cursor, dtype);
  if (op == Op::kRange) return ParseRange(cursor);
  const ArgNames names = NamesOf(op);
  Arg arg;
  cursor.SkipSpace();
  const bool present = cursor.at < cursor.line.size() && IsWordChar(cursor.line[cursor.at]);
  if (!names.required && !present) return arg;
  if (names.spelling_a == Spelling::kCombiningOp) {
    absl::StatusOr<std::string_view> token = ParseAttribute(cursor, names.a);
    if (!token.ok()) return token.status();
    const std::optional<Op> combine = ParseOp(*token);
    if (!combine.has_value()) {
      return cursor.ErrorAt(cursor.at - token->size(), Concat("'", *token, "' is no op"));
    }
    arg.a = static_cast<int64_t>(*combine);
  } else if (absl::Status s = ParseInteger(cursor, names.a, &arg.a); !s.ok()) {
    return s;
  }
  if (!names.b.empty()) {
    if (absl::Status s = ParseInteger(cursor, names.b, &arg.b); !s.ok()) return s;
  }
  return arg;
}

using NodesByName = absl::flat_hash_map<std::string_view, const UOp*>;

absl::StatusOr<std::vector<const UOp*>> ParseSources(Cursor& cursor, const NodesByName& nodes) {
  std::vector<const UOp*> sources;
  while (!cursor.AtEnd()) {
    if (!sources.empty() && !cursor.Take(',')) return cursor.Error("expected a comma");
    cursor.SkipSpace();
    const size_t begin = cursor.at;
    if (!cursor.Take('%')) return cursor.Error("expected a source: %name");
    const std::string_view name = cursor.Word();
    const auto found = nodes.find(name);
    if (found == nodes.end()) {
      return cursor.ErrorAt(begin, Concat("%", name, " is not defined above"));
    }
    sources.push_back(found->second);
  }
  return sources;
}

// `%name = op.dtype arguments sources`; the line is not empty.
absl::StatusOr<const UOp*> ParseLine(UOpGraph& graph, Cursor& cursor, NodesByName& nodes) {
  const size_t begin = cursor.at;
  if (!cursor.Take('%')) return cursor.Error("expected %name =");
  const std::string_view name = cursor.Word();
  if (name.empty()) return cursor.Error("a name is letters, digits and underscores");
  if (nodes.contains(name)) return cursor.ErrorAt(begin, Concat("%", name, " is defined twice"));
  if (!cursor.Take('=')) return cursor.Error("expected =");

  cursor.SkipSpace();
  const size_t op_begin = cursor.at;
  const std::string_view op_name = cursor.Word();
  const std::optional<Op> op = ParseOp(op_name);
  if (!op.has_value()) return cursor.ErrorAt(op_begin, Concat("'", op_name, "' is no op"));
  DType dtype = kVoidType;
  if (cursor.at < cursor.line.size() && cursor.line[cursor.at] == '.') {
    const size_t type_begin = ++cursor.at;
    const std::string_view type_name = cursor.Word();
    const std::optional<DType> parsed = ParseDType(type_name);
    if (!parsed.has_value()) {
      return cursor.ErrorAt(type_begin, Concat("'", type_name, "' is no dtype"));
    }
    dtype = *parsed;
  }
  const absl::StatusOr<Arg> arg = ParseArg(cursor, *op, dtype);
  if (!arg.ok()) return arg.status();
  const absl::StatusOr<std::vector<const UOp*>> sources = ParseSources(cursor, nodes);
  if (!sources.ok()) return sources.status();
  if (absl::Status s = VerifyNode(*op, dtype, *sources, *arg); !s.ok()) {
    return cursor.ErrorAt(op_begin, {s.message().data(), s.message().size()});
  }
  const UOp* made = graph.Make(*op, dtype, *sources, *arg);
  nodes[name] = made;
  return made;
}

}  // namespace

std::string ToText(const UOp* root) {
  std::string text;
  absl::flat_hash_map<const UOp*, size_t> numbers;
  for (const UOp* u : Toposort(root)) {
    const size_t number = numbers.size();
    numbers[u] = number;
    Append(text, "%", number, " = ", OpName(u->op));
    if (u->dtype != kVoidType) Append(text, ".", DTypeName(u->dtype));
    Append(text, ArgText(u));
    std::string_view separator = " ";
    for (const UOp* s : u->src()) {
      Append(text, separator, "%", numbers.at(s));
      separator = ", ";
    }
    text += '\n';
  }
  return text;
}

absl::StatusOr<const UOp*> ParseText(UOpGraph& graph, std::string_view text) {
  NodesByName nodes;
  const UOp* last = nullptr;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    Cursor cursor{line, ++number};
    if (cursor.AtEnd()) continue;
    const absl::StatusOr<const UOp*> node = ParseLine(graph, cursor, nodes);
    if (!node.ok()) return node.status();
    last = *node;
  }
  if (last == nullptr) return absl::InvalidArgumentError("line 1, column 1: there is no node");
  return last;
}

}  // namespace quern
