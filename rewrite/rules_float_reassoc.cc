#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kReassoc = Domain::kFloatReassoc;

// Floats taken for real numbers: other roundings, and answers where infinities and NaNs would have
// given a NaN.
// clang-format off
constexpr Rule kFloatReassocRules[] = {
    // name                  domain    before                      after                when
    {"rsub.self",            kReassoc, x - x,                      0},
    {"radd.zero",            kReassoc, x + 0,                      x},
    {"rsub.from_zero",       kReassoc, 0 - x,                      -x},
    {"rmul.zero",            kReassoc, x * 0,                      0},
    {"rdiv.zero",            kReassoc, fdiv(0, x),                 0},
    {"rdiv.self",            kReassoc, fdiv(x, x),                 1},
    {"radd.consts",          kReassoc, (x + c0) + c1,              x + (c0 + c1)},
    {"rmul.consts",          kReassoc, (x * c0) * c1,              x * (c0 * c1)},
    {"radd.const_out",       kReassoc, (x + c0) + y,               (x + y) + c0},
    {"rmul.const_out",       kReassoc, (x * c0) * y,               (x * y) * c0},
    {"rdiv.const",           kReassoc, fdiv(x, c0),                x * fdiv(1, c0),     NotEqual(c0, 0)},
    {"rdiv.scaled",          kReassoc, fdiv(x * c0, y),            fdiv(x, y) * c0},
    {"rdiv.div",             kReassoc, fdiv(fdiv(x, y), z),        fdiv(x, y * z)},
    {"rmul.div",             kReassoc, fdiv(x, y) * y,             x},
    {"rdiv.mul",             kReassoc, fdiv(x * y, y),             x},
    {"radd.like",            kReassoc, x * c0 + x,                 x * (c0 + 1)},
    {"radd.like_scaled",     kReassoc, x * c0 + x * c1,            x * (c0 + c1)},
    {"radd.common_factor",   kReassoc, x * y + x * z,              x * (y + z)},
    {"radd.common_divisor",  kReassoc, fdiv(x, z) + fdiv(y, z),    fdiv(x + y, z)},
    {"rsub.neg",             kReassoc, -x - y,                     -(x + y)},
    {"rsub.add",             kReassoc, (x + y) - y,                x},
    {"radd.sub",             kReassoc, (x - y) + y,                x},
    {"rsub.sub",             kReassoc, x - (x - y),                y},
    {"rsqrt.square",         kReassoc, sqrt(x) * sqrt(x),          x},
    {"rsqrt.of_square",      kReassoc, sqrt(x * x),                abs(x)},
    {"rexp.mul",             kReassoc, exp(x) * exp(y),            exp(x + y)},
    {"rexp2.mul",            kReassoc, exp2(x) * exp2(y),          exp2(x + y)},
    {"rlog.exp",             kReassoc, log(exp(x)),                x},
    {"rlog2.exp2",           kReassoc, log2(exp2(x)),              x},
};
// clang-format on

static_assert(WellFormed(kFloatReassocRules));

}  // namespace

std::span<const Rule> FloatReassocRules() { return kFloatReassocRules; }

}  // namespace quern
