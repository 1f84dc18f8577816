#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kFloat = Domain::kFloat;

// What holds for every float, NaN, infinities and both zeros included. What is not here does not
// hold: x + 0 is +0 for x = −0, x * 0 is NaN for infinite x, x - x likewise.
// clang-format off
constexpr Rule kFloatRules[] = {
    // name                     domain  before                     after                 when
    {"fadd.const_right",        kFloat, c0 + x,                    x + c0},
    {"fmul.const_right",        kFloat, c0 * x,                    x * c0},
    {"fadd.negative_zero",      kFloat, x + negative_zero,         x},
    {"fsub.zero",               kFloat, x - 0,                     x},
    {"fsub.const",              kFloat, x - c0,                    x + -c0},
    {"fmul.one",                kFloat, x * 1,                     x},
    {"fdiv.one",                kFloat, fdiv(x, 1),                x},
    {"fmul.minus_one",          kFloat, x * -1,                    -x},
    {"fdiv.minus_one",          kFloat, fdiv(x, -1),               -x},
    {"fdiv.exact_inverse",      kFloat, fdiv(x, c0),               x * fdiv(1, c0),      exact_inverse(c0)},
    {"fadd.double",             kFloat, x + x,                     x * 2},
    {"fneg.neg",                kFloat, -(-x),                     x},
    {"fneg.scaled",             kFloat, -(x * c0),                 x * -c0},
    {"fmul.neg_both",           kFloat, (-x) * (-y),               x * y},
    {"fmul.neg_const",          kFloat, (-x) * c0,                 x * -c0},
    {"fmul.neg",                kFloat, (-x) * y,                  -(x * y)},
    {"fdiv.neg_both",           kFloat, fdiv(-x, -y),              fdiv(x, y)},
    {"fdiv.neg_dividend",       kFloat, fdiv(-x, y),               -fdiv(x, y)},
    {"fdiv.neg_divisor",        kFloat, fdiv(x, -y),               -fdiv(x, y)},
    {"fadd.neg",                kFloat, x + -y,                    x - y},
    {"fsub.neg",                kFloat, x - -y,                    x + y},
    {"fabs.abs",                kFloat, abs(abs(x)),               abs(x)},
    {"fabs.neg",                kFloat, abs(-x),                   abs(x)},
    {"fabs.square",             kFloat, abs(x) * abs(x),           x * x},
    {"fabs.of_square",          kFloat, abs(x * x),                x * x},
    {"ffloor.floor",            kFloat, floor(floor(x)),           floor(x)},
    {"fmax.self",               kFloat, max(x, x),                 x},
    {"fmin.self",               kFloat, min(x, x),                 x},
    {"fmax.lowest",             kFloat, max(x, -infinity),         x},
    {"fmin.highest",            kFloat, min(x, infinity),          x},
    {"fmax.lowest_left",        kFloat, max(-infinity, x),         x},
    {"fmin.highest_left",       kFloat, min(infinity, x),          x},
    {"fmax.again",              kFloat, max(max(x, y), y),         max(x, y)},
    {"fmin.again",              kFloat, min(min(x, y), y),         min(x, y)},
    {"fmax.consts",             kFloat, max(max(x, c0), c1),       max(x, max(c0, c1))},
    {"fmin.consts",             kFloat, min(min(x, c0), c1),       min(x, min(c0, c1))},
    {"fmax.abs",                kFloat, max(abs(x), 0),            abs(x)},
    {"flt.self",                kFloat, x < x,                     0},
    {"flt.neg_both",            kFloat, -x < -y,                   y < x},
    {"flt.neg_const",           kFloat, -x < c0,                   -c0 < x},
    {"flt.neg_const_right",     kFloat, c0 < -x,                   x < -c0},
    {"fle.neg_both",            kFloat, -x <= -y,                  y <= x},
    {"flt.abs_never",           kFloat, abs(x) < 0,                0},
    {"feq.neg_both",            kFloat, Equal(-x, -y),             Equal(x, y)},
    {"feq.neg_const",           kFloat, Equal(-x, c0),             Equal(x, -c0)},
    {"feq.abs_zero",            kFloat, Equal(abs(x), 0),          Equal(x, 0)},
    {"fnot.eq",                 kFloat, !Equal(x, y),              NotEqual(x, y)},
    {"fnot.ne",                 kFloat, !NotEqual(x, y),           Equal(x, y)},
    {"feq.const_right",         kFloat, Equal(c0, x),              Equal(x, c0)},
    {"fne.const_right",         kFloat, NotEqual(c0, x),           NotEqual(x, c0)},
    {"fand.eq_ne",              kFloat, Equal(x, y) & NotEqual(x, y), 0},
    {"fand.lt_both_ways",       kFloat, x < y & y < x,             0},
    {"for.lt_eq",               kFloat, x < y | Equal(x, y),       x <= y},
    {"fand.le_both_ways",       kFloat, x <= y & y <= x,           Equal(x, y)},
    {"fmuladd.one",             kFloat, muladd(x, 1, y),           x + y},
    {"fmuladd.minus_one",       kFloat, muladd(x, -1, y),          y - x},
    {"fmuladd.negative_zero",   kFloat, muladd(x, y, negative_zero), x * y},
    {"fmuladd.neg_both",        kFloat, muladd(-x, -y, z),         muladd(x, y, z)},
    {"fwhere.neg",              kFloat, where(p, -x, -y),          -where(p, x, y)},
};
// clang-format on

static_assert(WellFormed(kFloatRules));

}  // namespace

std::span<const Rule> FloatRules() { return kFloatRules; }

}  // namespace quern
