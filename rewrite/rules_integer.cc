#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kInteger = Domain::kInteger;

// Integers of fixed width. Guards compute with mathematical integers; `highest` and `bits` are
// those of the type.
// clang-format off
constexpr Rule kIntegerRules[] = {
    // name                   domain    before                          after                    when
    {"and.zero",              kInteger, x & 0,                          0},
    {"and.ones",              kInteger, x & -1,                         x},
    {"or.zero",               kInteger, x | 0,                          x},
    {"or.ones",               kInteger, x | -1,                         -1},
    {"xor.zero",              kInteger, x ^ 0,                          x},
    {"xor.ones",              kInteger, x ^ -1,                         ~x},
    {"and.self",              kInteger, x & x,                          x},
    {"or.self",               kInteger, x | x,                          x},
    {"xor.self",              kInteger, x ^ x,                          0},
    {"bitand.const_right",    kInteger, c0 & x,                         x & c0},
    {"bitor.const_right",     kInteger, c0 | x,                         x | c0},
    {"bitxor.const_right",    kInteger, c0 ^ x,                         x ^ c0},
    {"bitnot.twice",          kInteger, ~(~x),                          x},
    {"bitand.not",            kInteger, x & ~x,                         0},
    {"bitor.not",             kInteger, x | ~x,                         -1},
    {"bitxor.not",            kInteger, x ^ ~x,                         -1},
    {"bitand.consts",         kInteger, (x & c0) & c1,                  x & (c0 & c1)},
    {"bitor.consts",          kInteger, (x | c0) | c1,                  x | (c0 | c1)},
    {"bitxor.consts",         kInteger, (x ^ c0) ^ c1,                  x ^ (c0 ^ c1)},
    {"bitand.absorbs",        kInteger, x & (x | y),                    x},
    {"bitor.absorbs",         kInteger, x | (x & y),                    x},
    {"bitxor.cancel",         kInteger, (x ^ y) ^ y,                    x},
    {"bitand.mask_nothing",   kInteger, x & c0,                         x,                       nonneg(x) && power_of_two(c0 + 1) && vmax(x) <= c0},
    {"bitand.mask_shifted",   kInteger, (x * c0) & c1,                  0,                       0 < c0 && power_of_two(c0) && 0 <= c1 && c1 < c0},
    {"shl.as_mul",            kInteger, x << c0,                        x * (1 << c0)},
    {"shr.zero",              kInteger, x >> 0,                         x},
    {"shr.shr",               kInteger, (x >> c0) >> c1,                x >> (c0 + c1),          0 <= c0 && 0 <= c1 && c0 + c1 < bits},
    {"shr.small",             kInteger, x >> c0,                        0,                       0 <= c0 && c0 < bits && within(x, 1 << c0)},
    {"divi.one",              kInteger, x / 1,                          x},
    {"modi.one",              kInteger, x % 1,                          0},
    {"divi.zero",             kInteger, x / 0,                          0},
    {"modi.zero",             kInteger, x % 0,                          x},
    {"modi.self",             kInteger, x % x,                          0},
    {"divi.self",             kInteger, x / x,                          1,                       0 < vmin(x)},
    {"divi.minus_one",        kInteger, x / -1,                         x * -1,                  is_signed},
    {"modi.minus_one",        kInteger, x % -1,                         0,                       is_signed},
    {"divi.small",            kInteger, x / c0,                         0,                       within(x, c0)},
    {"modi.small",            kInteger, x % c0,                         x,                       within(x, c0)},
    {"divi.divi",             kInteger, (x / c0) / c1,                  x / (c0 * c1),           0 < c0 && 0 < c1 && c0 * c1 <= highest},
    {"modi.modi",             kInteger, (x % c0) % c1,                  x % c1,                  0 < c1 && 0 <= c0 && divides(c1, c0)},
    {"modi.power_of_two",     kInteger, x % c0,                         x & (c0 - 1),            power_of_two(c0)},
    {"divi.block",            kInteger, (x / c0) * c0 + x % c0,         x},
    {"trunc_div.one",         kInteger, trunc_div(x, 1),                x},
    {"trunc_mod.one",         kInteger, trunc_mod(x, 1),                0},
    {"trunc_div.zero",        kInteger, trunc_div(x, 0),                0},
    {"trunc_mod.zero",        kInteger, trunc_mod(x, 0),                x},
    {"trunc_mod.self",        kInteger, trunc_mod(x, x),                0},
    {"trunc_div.minus_one",   kInteger, trunc_div(x, -1),               x * -1,                  is_signed},
    {"trunc_mod.minus_one",   kInteger, trunc_mod(x, -1),               0,                       is_signed},
    {"trunc_div.as_floor",    kInteger, trunc_div(x, y),                x / y,                   nonneg(x) && nonneg(y)},
    {"trunc_mod.as_floor",    kInteger, trunc_mod(x, y),                x % y,                   nonneg(x) && nonneg(y)},
    {"trunc_div.trunc_div",   kInteger, trunc_div(trunc_div(x, c0), c1), trunc_div(x, c0 * c1),  0 < c0 && 0 < c1 && c0 * c1 <= highest},
    {"trunc_mod.trunc_mod",   kInteger, trunc_mod(trunc_mod(x, c0), c1), trunc_mod(x, c1),       0 < c1 && 0 <= c0 && divides(c1, c0)},
    {"trunc_div.recombine",   kInteger, trunc_div(x, c0) * c0 + trunc_mod(x, c0), x},
    {"absi.negated",          kInteger, abs(x * -1),                    abs(x),                  is_signed},
    {"lei.const",             kInteger, x <= c0,                        x < c0 + 1,              c0 < highest},
    {"lei.const_left",        kInteger, c0 <= x,                        c0 - 1 < x,              (is_signed || 0 < c0) && 0 - highest <= c0},
    {"noti.lt",               kInteger, !(x < y),                       y <= x},
    {"noti.le",               kInteger, !(x <= y),                      y < x},
    {"andi.lt_consts",        kInteger, x < c0 & x < c1,                x < min(c0, c1)},
    {"andi.lt_consts_right",  kInteger, c0 < x & c1 < x,                max(c0, c1) < x},
    {"ori.lt_consts",         kInteger, x < c0 | x < c1,                x < max(c0, c1)},
    {"ori.lt_consts_right",   kInteger, c0 < x | c1 < x,                min(c0, c1) < x},
    {"andi.lt_empty",         kInteger, x < c0 & c1 < x,                0,                       c0 <= c1 + 1},
    {"ori.lt_full",           kInteger, x < c0 | c1 < x,                1,                       c1 < c0},
};
// clang-format on

static_assert(WellFormed(kIntegerRules));

}  // namespace

std::span<const Rule> IntegerRules() { return kIntegerRules; }

}  // namespace quern
