#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kAny = Domain::kAny;
constexpr Domain kBool = Domain::kBool;

// Both sides of a choice are values, so these hold for NaN and for wrapping integers as well.
// clang-format off
constexpr Rule kWhereRules[] = {
    // name                  domain before                              after                     when
    {"where.true",           kAny,  where(1, x, y),                     x},
    {"where.false",          kAny,  where(0, x, y),                     y},
    {"where.same",           kAny,  where(p, x, x),                     x},
    {"where.not",            kAny,  where(!p, x, y),                    where(p, y, x)},
    {"where.again_true",     kAny,  where(p, where(p, x, y), z),        where(p, x, z)},
    {"where.again_false",    kAny,  where(p, x, where(p, y, z)),        where(p, x, z)},
    {"where.and",            kAny,  where(p, where(q, x, y), y),        where(p & q, x, y)},
    {"where.or",             kAny,  where(p, x, where(q, x, y)),        where(p | q, x, y)},
    {"where.and_not",        kAny,  where(p, where(q, y, x), y),        where(p & !q, x, y)},
    {"where.known_and",      kAny,  where(p, where(p & q, x, y), z),    where(p, where(q, x, y), z)},
    {"where.known_or",       kAny,  where(p, x, where(p | q, y, z)),    where(p, x, where(q, y, z))},
    {"where.add_const",      kAny,  where(p, c0, c1) + c2,              where(p, c0 + c2, c1 + c2)},
    {"where.mul_const",      kAny,  where(p, c0, c1) * c2,              where(p, c0 * c2, c1 * c2)},
    {"where.lt_const",       kAny,  where(p, c0, c1) < c2,              where(p, c0 < c2, c1 < c2)},
    {"where.gt_const",       kAny,  c2 < where(p, c0, c1),              where(p, c2 < c0, c2 < c1)},
    {"where.eq_const",       kAny,  Equal(where(p, c0, c1), c2),        where(p, Equal(c0, c2), Equal(c1, c2))},
    {"where.ne_const",       kAny,  NotEqual(where(p, c0, c1), c2),     where(p, NotEqual(c0, c2), NotEqual(c1, c2))},
    {"where.add_same",       kAny,  where(p, x, y) + where(p, z, w),    where(p, x + z, y + w)},
    {"where.mul_same",       kAny,  where(p, x, y) * where(p, z, w),    where(p, x * z, y * w)},
    {"where.is_condition",   kBool, where(p, 1, 0),                     p},
    {"where.is_negation",    kBool, where(p, 0, 1),                     !p},
    {"where.is_and",         kBool, where(p, q, 0),                     p & q},
    {"where.is_or",          kBool, where(p, 1, q),                     p | q},
    {"where.is_and_not",     kBool, where(p, 0, q),                     !p & q},
    {"where.is_or_not",      kBool, where(p, q, 1),                     !p | q},
    {"where.not_outside",    kBool, where(p, !q, !r),                   !where(p, q, r)},
    {"where.own_condition",  kBool, where(p, p, q),                     p | q},
    {"where.own_condition_else", kBool, where(p, q, p),                 p & q},
};
// clang-format on

static_assert(WellFormed(kWhereRules));

}  // namespace

std::span<const Rule> WhereRules() { return kWhereRules; }

}  // namespace quern
