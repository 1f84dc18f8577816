#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kIndex = Domain::kIndex;

// The normal comparison of Index is `terms < constant`, `constant < terms`, or equality with a
// constant. Index has no largest value, so <= is < with one more.
// clang-format off
constexpr Rule kIndexCompareRules[] = {
    // name                 domain  before               after                                when
    {"le.as_lt",            kIndex, x <= y,              x < y + 1},
    {"not.lt",              kIndex, !(x < y),            y < x + 1},
    {"lt.const_left",       kIndex, x + c0 < c1,         x < c1 - c0},
    {"lt.const_right",      kIndex, c0 < x + c1,         c0 - c1 < x},
    {"lt.common_left",      kIndex, x + y < x + z,       y < z},
    {"lt.cancel_left",      kIndex, x + y < x,           y < 0},
    {"lt.cancel_right",     kIndex, x < x + y,           0 < y},
    {"lt.scaled",           kIndex, x * c0 < c1,         x < (c1 + c0 - 1) / c0,              1 < c0},
    {"lt.scaled_right",     kIndex, c0 < x * c1,         c0 / c1 < x,                         1 < c1},
    {"lt.negated",          kIndex, x * c0 < c1,         (0 - c1) / (0 - c0) < x,             c0 < 0},
    {"lt.negated_right",    kIndex, c0 < x * c1,         x < (0 - c0 - c1 - 1) / (0 - c1),    c1 < 0},
    {"lt.scaled_both",      kIndex, x * c0 < y * c0,     x < y,                               0 < c0},
    {"lt.div",              kIndex, x / c0 < c1,         x < c0 * c1,                         0 < c0},
    {"lt.div_right",        kIndex, c0 < x / c1,         (c0 + 1) * c1 - 1 < x,               0 < c1},
    {"lt.split",            kIndex, x * c0 + y < c1,     x < c1 / c0,                         0 < c0 && divides(c0, c1) && within(y, c0)},
    {"lt.split_right",      kIndex, c0 < x * c1 + y,     c0 / c1 < x,                         0 < c1 && divides(c1, c0 + 1) && within(y, c1)},
    {"eq.scaled",           kIndex, Equal(x * c0, c1),   Equal(x, c1 / c0),                   NotEqual(c0, 0) && NotEqual(c0, 1) && divides(c0, c1)},
    {"eq.scaled_never",     kIndex, Equal(x * c0, c1),   0,                                   NotEqual(c0, 0) && !divides(c0, c1)},
    {"ne.scaled",           kIndex, NotEqual(x * c0, c1), NotEqual(x, c1 / c0),               NotEqual(c0, 0) && NotEqual(c0, 1) && divides(c0, c1)},
    {"ne.scaled_always",    kIndex, NotEqual(x * c0, c1), 1,                                  NotEqual(c0, 0) && !divides(c0, c1)},
    {"and.lt_consts",       kIndex, x < c0 & x < c1,     x < min(c0, c1)},
    {"and.lt_consts_right", kIndex, c0 < x & c1 < x,     max(c0, c1) < x},
    {"or.lt_consts",        kIndex, x < c0 | x < c1,     x < max(c0, c1)},
    {"or.lt_consts_right",  kIndex, c0 < x | c1 < x,     min(c0, c1) < x},
    {"and.lt_empty",        kIndex, x < c0 & c1 < x,     0,                                   c0 <= c1 + 1},
    {"or.lt_full",          kIndex, x < c0 | c1 < x,     1,                                   c1 < c0},
    {"and.lt_single",       kIndex, x < c0 & c1 < x,     Equal(x, c1 + 1),                    Equal(c0, c1 + 2)},
    {"and.eq_lt",           kIndex, Equal(x, c0) & x < c1, Equal(x, c0),                      c0 < c1},
    {"and.eq_lt_right",     kIndex, Equal(x, c0) & c1 < x, Equal(x, c0),                      c1 < c0},
    {"and.eq_consts",       kIndex, Equal(x, c0) & Equal(x, c1), 0,                           NotEqual(c0, c1)},
    {"or.ne_consts",        kIndex, NotEqual(x, c0) | NotEqual(x, c1), 1,                     NotEqual(c0, c1)},
};
// clang-format on

static_assert(WellFormed(kIndexCompareRules));

}  // namespace

std::span<const Rule> IndexCompareRules() { return kIndexCompareRules; }

}  // namespace quern
