#include "rewrite/op.h"

#include <array>

namespace quern {
namespace {

constexpr int8_t kAny = -1;
constexpr bool yes = true;
constexpr bool no = false;

// name, least and most sources, elementwise, commutative, comparison, statement
constexpr std::array<OpInfo, kOpCount> kOps = {{
    {"const", 0, 0, no, no, no, no},         {"param", 0, 0, no, no, no, no},
    {"scratch", 0, 0, no, no, no, no},       {"register", 0, 0, no, no, no, no},
    {"range", 0, 0, no, no, no, no},         {"lanes", 0, 0, no, no, no, no},
    {"index", 2, 3, no, no, no, no},         {"load", 1, 2, no, no, no, no},
    {"store", 2, 2, no, no, no, yes},        {"reduce", 1, kAny, no, no, no, no},
    {"stage", 1, kAny, no, no, no, no},      {"scan", 2, kAny, no, no, no, no},
    {"add", 2, 2, yes, yes, no, no},         {"sub", 2, 2, yes, no, no, no},
    {"mul", 2, 2, yes, yes, no, no},         {"div", 2, 2, yes, no, no, no},
    {"floordiv", 2, 2, yes, no, no, no},     {"floormod", 2, 2, yes, no, no, no},
    {"truncdiv", 2, 2, yes, no, no, no},     {"truncmod", 2, 2, yes, no, no, no},
    {"max", 2, 2, yes, no, no, no},  // Not commutative: zeros of both signs (docs/semantics.md).
    {"min", 2, 2, yes, no, no, no},          {"and", 2, 2, yes, yes, no, no},
    {"or", 2, 2, yes, yes, no, no},          {"xor", 2, 2, yes, yes, no, no},
    {"shl", 2, 2, yes, no, no, no},          {"shr", 2, 2, yes, no, no, no},
    {"lt", 2, 2, yes, no, yes, no},          {"le", 2, 2, yes, no, yes, no},
    {"eq", 2, 2, yes, yes, yes, no},         {"ne", 2, 2, yes, yes, yes, no},
    {"where", 3, 3, yes, no, no, no},        {"muladd", 3, 3, yes, no, no, no},
    {"neg", 1, 1, yes, no, no, no},          {"abs", 1, 1, yes, no, no, no},
    {"not", 1, 1, yes, no, no, no},          {"floor", 1, 1, yes, no, no, no},
    {"sqrt", 1, 1, yes, no, no, no},         {"exp", 1, 1, yes, no, no, no},
    {"exp2", 1, 1, yes, no, no, no},         {"log", 1, 1, yes, no, no, no},
    {"log2", 1, 1, yes, no, no, no},         {"sin", 1, 1, yes, no, no, no},
    {"tanh", 1, 1, yes, no, no, no},         {"erf", 1, 1, yes, no, no, no},
    {"cast", 1, 1, yes, no, no, no},         {"bitcast", 1, 1, yes, no, no, no},
    {"broadcast", 1, 1, no, no, no, no},     {"horizontal", 1, 1, no, no, no, no},
    {"prefix", 1, 1, no, no, no, no},        {"extract", 1, 1, no, no, no, no},
    {"interleave", 1, kAny, no, no, no, no}, {"tile", 3, 3, no, no, no, no},
    {"matrix", 3, 3, no, no, no, no},        {"loop", 2, kAny, no, no, no, yes},
    {"block", 0, kAny, no, no, no, yes},     {"guard", 1, 1, no, no, no, yes},
    {"phase", 0, kAny, no, no, no, yes},     {"sink", 0, kAny, no, no, no, yes},
}};

constexpr std::array<std::string_view, kAxisTypeCount> kAxisTypes = {
    "LOOP",         "GLOBAL", "THREAD", "LOCAL",  "WARP", "GROUPTOP",
    "GROUP_REDUCE", "REDUCE", "UPCAST", "UNROLL", "LANE"};

}  // namespace

const OpInfo& GetOpInfo(Op op) { return kOps[static_cast<size_t>(op)]; }

std::optional<Op> ParseOp(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i) {
    if (kOps[i].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::string_view AxisTypeName(AxisType type) { return kAxisTypes[static_cast<size_t>(type)]; }

std::optional<AxisType> ParseAxisType(std::string_view name) {
  for (int i = 0; i < kAxisTypeCount; ++i) {
    if (kAxisTypes[i] == name) return static_cast<AxisType>(i);
  }
  return std::nullopt;
}

}  // namespace quern
