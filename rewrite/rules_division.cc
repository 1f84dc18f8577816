#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kIndex = Domain::kIndex;

// Floor division by positive constants, which is what loops are split and joined with. A negative
// divisor is turned around first; a dividend's constant is moved so that the rest begins in the
// block that begins at 0.
// clang-format off
constexpr Rule kDivisionRules[] = {
    // name                    domain  before                          after                         when
    {"div.one",                kIndex, x / 1,                          x},
    {"mod.one",                kIndex, x % 1,                          0},
    {"div.zero",               kIndex, x / 0,                          0},
    {"mod.zero",               kIndex, x % 0,                          x},
    {"div.zero_dividend",      kIndex, 0 / x,                          0},
    {"mod.zero_dividend",      kIndex, 0 % x,                          0},
    {"mod.self",               kIndex, x % x,                          0},
    {"div.self",               kIndex, x / x,                          1,                            0 < vmin(x)},
    {"div.negative",           kIndex, x / c0,                         (x * -1) / (0 - c0),          c0 < 0, Descent::kGuard},
    {"mod.negative",           kIndex, x % c0,                         ((x * -1) % (0 - c0)) * -1,   c0 < 0, Descent::kGuard},
    {"div.small",              kIndex, x / c0,                         0,                            within(x, c0)},
    {"mod.small",              kIndex, x % c0,                         x,                            within(x, c0)},
    {"div.small_var",          kIndex, x / y,                          0,                            nonneg(x) && vmax(x) < vmin(y)},
    {"mod.small_var",          kIndex, x % y,                          x,                            nonneg(x) && vmax(x) < vmin(y)},
    {"div.just_below",         kIndex, x / c0,                         -1,                           0 - c0 <= vmin(x) && vmax(x) < 0},
    {"mod.just_below",         kIndex, x % c0,                         x + c0,                       0 - c0 <= vmin(x) && vmax(x) < 0},
    {"div.multiple",           kIndex, (x * c0) / c1,                  x * (c0 / c1),                0 < c1 && divides(c1, c0)},
    {"mod.multiple",           kIndex, (x * c0) % c1,                  0,                            0 < c1 && divides(c1, c0)},
    {"div.multiple_var",       kIndex, (x * y) / y,                    x,                            0 < vmin(y)},
    {"mod.multiple_var",       kIndex, (x * y) % y,                    0},
    {"div.factor",             kIndex, (x * c0) / c1,                  x / (c1 / c0),                0 < c0 && 0 < c1 && divides(c0, c1)},
    {"mod.factor",             kIndex, (x * c0) % c1,                  (x % (c1 / c0)) * c0,         0 < c0 && 0 < c1 && divides(c0, c1)},
    {"div.add_multiple",       kIndex, (x * c0 + y) / c1,              x * (c0 / c1) + y / c1,       0 < c1 && divides(c1, c0)},
    {"mod.drop_multiple",      kIndex, (x * c0 + y) % c1,              y % c1,                       0 < c1 && divides(c1, c0)},
    {"div.add_small",          kIndex, (x * c0 + y) / c1,              x / (c1 / c0),                0 < c0 && 0 < c1 && divides(c0, c1) && within(y, c0)},
    {"mod.add_small",          kIndex, (x * c0 + y) % c1,              (x % (c1 / c0)) * c0 + y,     0 < c0 && 0 < c1 && divides(c0, c1) && within(y, c0)},
    {"div.add_const",          kIndex, (x + c0) / c1,                  x / c1 + c0 / c1,             0 < c1 && divides(c1, c0)&& Equal(vmin(x), 0)},
    {"mod.drop_const",         kIndex, (x + c0) % c1,                  x % c1,                       0 < c1 && divides(c1, c0) && Equal(vmin(x), 0)},
    {"div.reduce_const",       kIndex, (x + c0) / c1,                  (x + c0 % c1) / c1 + c0 / c1, 0 < c1 && (c0 < 0 || c1 <= c0) && Equal(vmin(x), 0), Descent::kGuard},
    {"mod.reduce_const",       kIndex, (x + c0) % c1,                  (x + c0 % c1) % c1,           0 < c1 && (c0 < 0 || c1 <= c0) && Equal(vmin(x), 0), Descent::kGuard},
    {"div.scaled_const",       kIndex, (x * c0 + c1) / c2,             (x + c1 / c0) / (c2 / c0),    1 < c0 && 0 < c2 && divides(c0, c2)},
    {"div.div",                kIndex, (x / c0) / c1,                  x / (c0 * c1),                0 < c0 && 0 < c1},
    {"div.div_add",            kIndex, (x / c0 + c1) / c2,             (x + c0 * c1) / (c0 * c2),    0 < c0 && 0 < c2},
    {"div.mod",                kIndex, (x % c0) / c1,                  (x / c1) % (c0 / c1),         0 < c0 && 0 < c1 && divides(c1, c0)},
    {"mod.mod",                kIndex, (x % c0) % c1,                  x % c1,                       0 < c1 && divides(c1, c0)},
    {"mod.add_mod",            kIndex, (x % c0 + y) % c1,              (x + y) % c1,                 0 < c1 && divides(c1, c0)},
    {"mod.add_mod_scaled",     kIndex, ((x % c0) * c1 + y) % c2,       (x * c1 + y) % c2,            0 < c0 && 0 < c2 && divides(c2, c0 * c1)},
    {"mod.sub_mod",            kIndex, (y + (x % c0) * -1) % c1,       (y + x * -1) % c1,            0 < c1 && divides(c1, c0)},
    {"divmod.recombine",       kIndex, (x / c0) * c0 + x % c0,         x},
    {"divmod.recombine_left",  kIndex, (y + (x / c0) * c0) + x % c0,   y + x},
    {"divmod.recombine_right", kIndex, (y + x % c0) + (x / c0) * c0,   y + x},
    {"divmod.recombine_scaled",kIndex, (x / c0) * c1 + (x % c0) * c2,  x * c2,                       Equal(c1, c0 * c2)},
    {"divmod.recombine_mod",   kIndex, ((x / c0) % c1) * c0 + x % c0,  x % (c0 * c1),                0 < c0 && 0 < c1},
    {"divmod.recombine_div",   kIndex, (x / c0) * c1 + (x / c2) % c1,  x / c2,                       0 < c1 && 0 < c2 && Equal(c0, c1 * c2)},
    {"mod.from_div",           kIndex, (x / c0) * c1 + x,              x % c0,                       Equal(c1, 0 - c0)},
    {"div.from_mod",           kIndex, (x + (x % c0) * -1) / c0,       x / c0,                       0 < c0},
    {"truncdiv.as_floor",      kIndex, trunc_div(x, y),                x / y,                        nonneg(x) && nonneg(y)},
    {"truncmod.as_floor",      kIndex, trunc_mod(x, y),                x % y,                        nonneg(x) && nonneg(y)},
    {"truncdiv.nonpos",        kIndex, trunc_div(x, c0),               ((x * -1) / c0) * -1,         vmax(x) <= 0 && 0 < c0},
    {"truncmod.nonpos",        kIndex, trunc_mod(x, c0),               ((x * -1) % c0) * -1,         vmax(x) <= 0 && 0 < c0},
    {"truncdiv.negative",      kIndex, trunc_div(x, c0),               trunc_div(x, 0 - c0) * -1,    c0 < 0, Descent::kGuard},
    {"truncmod.negative",      kIndex, trunc_mod(x, c0),               trunc_mod(x, 0 - c0),         c0 < 0, Descent::kGuard},
    {"truncdiv.one",           kIndex, trunc_div(x, 1),                x},
    {"truncmod.one",           kIndex, trunc_mod(x, 1),                0},
    {"truncdiv.zero",          kIndex, trunc_div(x, 0),                0},
    {"truncmod.zero",          kIndex, trunc_mod(x, 0),                x},
};
// clang-format on

static_assert(WellFormed(kDivisionRules));

}  // namespace

std::span<const Rule> DivisionRules() { return kDivisionRules; }

}  // namespace quern
