#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kIntegral = Domain::kIntegral;
constexpr Domain kIndex = Domain::kIndex;

// clang-format off
constexpr Rule kExtremumRules[] = {
    // name                  domain     before                         after                   when
    {"max.const_right",      kIntegral, max(c0, x),                    max(x, c0)},
    {"min.const_right",      kIntegral, min(c0, x),                    min(x, c0)},
    {"max.self",             kIntegral, max(x, x),                     x},
    {"min.self",             kIntegral, min(x, x),                     x},
    {"max.bounds",           kIntegral, max(x, y),                     x,                      vmax(y) <= vmin(x)},
    {"min.bounds",           kIntegral, min(x, y),                     x,                      vmax(x) <= vmin(y)},
    {"max.consts",           kIntegral, max(max(x, c0), c1),           max(x, max(c0, c1))},
    {"min.consts",           kIntegral, min(min(x, c0), c1),           min(x, min(c0, c1))},
    {"max.absorbs",          kIntegral, max(min(x, y), x),             x},
    {"min.absorbs",          kIntegral, min(max(x, y), x),             x},
    {"max.add",              kIndex,    max(x + y, x + z),             x + max(y, z)},
    {"min.add",              kIndex,    min(x + y, x + z),             x + min(y, z)},
    {"max.scaled",           kIndex,    max(x * c0, y * c0),           max(x, y) * c0,         0 < c0},
    {"min.scaled",           kIndex,    min(x * c0, y * c0),           min(x, y) * c0,         0 < c0},
    {"max.min_sum",          kIntegral, max(x, y) + min(x, y),         x + y},
    {"lt.self",              kIntegral, x < x,                         0},
    {"le.self",              kIntegral, x <= x,                        1},
    {"eq.self",              kIntegral, Equal(x, x),                   1},
    {"ne.self",              kIntegral, NotEqual(x, x),                0},
    {"lt.always",            kIntegral, x < y,                         1,                      vmax(x) < vmin(y)},
    {"lt.never",             kIntegral, x < y,                         0,                      vmax(y) <= vmin(x)},
    {"le.always",            kIntegral, x <= y,                        1,                      vmax(x) <= vmin(y)},
    {"le.never",             kIntegral, x <= y,                        0,                      vmax(y) < vmin(x)},
    {"eq.never",             kIntegral, Equal(x, y),                   0,                      vmax(x) < vmin(y)},
    {"ne.always",            kIntegral, NotEqual(x, y),                1,                      vmax(x) < vmin(y)},
    {"eq.const_right",       kIntegral, Equal(c0, x),                  Equal(x, c0)},
    {"ne.const_right",       kIntegral, NotEqual(c0, x),               NotEqual(x, c0)},
    {"eq.const",             kIntegral, Equal(x + c0, c1),             Equal(x, c1 - c0)},
    {"ne.const",             kIntegral, NotEqual(x + c0, c1),          NotEqual(x, c1 - c0)},
    {"eq.common",            kIntegral, Equal(x + y, x + z),           Equal(y, z)},
    {"ne.common",            kIntegral, NotEqual(x + y, x + z),        NotEqual(y, z)},
    {"eq.cancel",            kIntegral, Equal(x + y, x),               Equal(y, 0)},
    {"ne.cancel",            kIntegral, NotEqual(x + y, x),            NotEqual(y, 0)},
    {"eq.negated",           kIntegral, Equal(x * -1, c0),             Equal(x, 0 - c0)},
    {"ne.negated",           kIntegral, NotEqual(x * -1, c0),          NotEqual(x, 0 - c0)},
    {"not.eq",               kIntegral, !Equal(x, y),                  NotEqual(x, y)},
    {"not.ne",               kIntegral, !NotEqual(x, y),               Equal(x, y)},
    {"and.lt_both_ways",     kIntegral, x < y & y < x,                 0},
    {"and.lt_ne",            kIntegral, x < y & NotEqual(x, y),        x < y},
    {"and.lt_eq",            kIntegral, x < y & Equal(x, y),           0},
    {"or.lt_both_ways",      kIntegral, x < y | y < x,                 NotEqual(x, y)},
    {"and.eq_ne",            kIntegral, Equal(x, y) & NotEqual(x, y),  0},
    {"or.eq_ne",             kIntegral, Equal(x, y) | NotEqual(x, y),  1},
    {"where.max",            kIntegral, where(x < y, y, x),            max(x, y)},
    {"where.min",            kIntegral, where(x < y, x, y),            min(x, y)},
    {"where.eq",             kIntegral, where(Equal(x, y), x, y),      y},
    {"where.ne",             kIntegral, where(NotEqual(x, y), x, y),   x},
    {"where.max_le",         kIntegral, where(x <= y, y, x),           max(x, y)},
    {"where.min_le",         kIntegral, where(x <= y, x, y),           min(x, y)},
    {"where.max_const",      kIndex,    where(x < c0, c1, x),          max(x, c1),             c0 <= c1 + 1 && c1 <= c0},
    {"where.min_const",      kIndex,    where(x < c0, x, c1),          min(x, c1),             c0 <= c1 + 1 && c1 <= c0},
    {"lt.max_const",         kIntegral, max(x, c0) < c1,               x < c1,                 c0 < c1},
    {"lt.min_const",         kIntegral, min(x, c0) < c1,               x < c1,                 c1 <= c0},
    {"gt.max_const",         kIntegral, c0 < max(x, c1),               c0 < x,                 c1 <= c0},
    {"gt.min_const",         kIntegral, c0 < min(x, c1),               c0 < x,                 c0 < c1},
};
// clang-format on

static_assert(WellFormed(kExtremumRules));

}  // namespace

std::span<const Rule> ExtremumRules() { return kExtremumRules; }

}  // namespace quern
