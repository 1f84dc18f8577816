#include "optimizer/action.h"

#include <array>
#include <cctype>
#include <charconv>

#include "rewrite/concat.h"

namespace quern {
namespace {

struct ActionInfo {
  std::string_view name;
  int arguments;
};

constexpr std::array<ActionInfo, kActionKindCount> kActions = {{
    {"UPCAST", 2},
    {"UNROLL", 2},
    {"LOCAL", 2},
    {"GROUP", 2},
    {"GROUPTOP", 2},
    {"THREAD", 2},
    {"SWAP", 2},
    {"PADTO", 2},
    {"NOLOCALS", 0},
    {"TC", 1},
}};

absl::Status ParseError(size_t at, std::string_view what) {
  return absl::InvalidArgumentError(Concat("actions: at character ", at + 1, ": ", what));
}

// Reads one integer and moves `at` past it.
absl::StatusOr<int64_t> ReadInteger(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == ' ') ++at;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc()) return ParseError(at, "a whole number is expected");
  at = static_cast<size_t>(end - text.data());
  while (at < text.size() && text[at] == ' ') ++at;
  return value;
}

}  // namespace

std::string_view ActionName(ActionKind kind) { return kActions[static_cast<size_t>(kind)].name; }

std::string ActionToString(const Action& action) {
  const ActionInfo& info = kActions[static_cast<size_t>(action.kind)];
  switch (info.arguments) {
    case 0:
      return std::string(info.name);
    case 1:
      return Concat(info.name, "(", action.axis, ")");
    default:
      return Concat(info.name, "(", action.axis, ",", action.amount, ")");
  }
}

std::string ActionsToString(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& a : actions) Append(text, text.empty() ? "" : " ", ActionToString(a));
  return text;
}

absl::StatusOr<std::vector<Action>> ParseActions(std::string_view text) {
  std::vector<Action> actions;
  size_t at = 0;
  while (true) {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',' || text[at] == '\n')) ++at;
    if (at == text.size()) return actions;
    const size_t begin = at;
    while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at]))) ++at;
    const std::string_view name = text.substr(begin, at - begin);
    Action action;
    int arguments = -1;
    for (int i = 0; i < kActionKindCount; ++i) {
      if (kActions[i].name != name) continue;
      action.kind = static_cast<ActionKind>(i);
      arguments = kActions[i].arguments;
    }
    if (arguments < 0) {
      return ParseError(begin, Concat("\"", name,
                                      "\" is no action; there are UPCAST, "
                                      "UNROLL, LOCAL, GROUP, GROUPTOP, THREAD, SWAP, "
                                      "PADTO, NOLOCALS and TC"));
    }
    if (arguments > 0) {
      if (at == text.size() || text[at] != '(') {
        return ParseError(at, Concat("\"(\" is expected after ", name));
      }
      ++at;
      absl::StatusOr<int64_t> axis = ReadInteger(text, at);
      if (!axis.ok()) return axis.status();
      if (*axis < INT32_MIN || *axis > INT32_MAX) return ParseError(at, "the axis is too large");
      action.axis = static_cast<int>(*axis);
      if (arguments == 2) {
        if (at == text.size() || text[at] != ',') {
          return ParseError(at, Concat("\",\" and a second number are expected in ", name));
        }
        ++at;
        absl::StatusOr<int64_t> amount = ReadInteger(text, at);
        if (!amount.ok()) return amount.status();
        action.amount = *amount;
      }
      if (at == text.size() || text[at] != ')') return ParseError(at, "\")\" is expected");
      ++at;
    }
    actions.push_back(action);
  }
}

}  // namespace quern
