#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kBool = Domain::kBool;

// Arithmetic of bools is logic (docs/semantics.md); everything becomes and, or, xor and not.
// clang-format off
constexpr Rule kBoolRules[] = {
    // name                   domain  before                after             when
    {"bool.add",              kBool,  p + q,                p | q},
    {"bool.mul",              kBool,  p * q,                p & q},
    {"bool.max",              kBool,  max(p, q),            p | q},
    {"bool.min",              kBool,  min(p, q),            p & q},
    {"bool.eq_true",          kBool,  Equal(p, 1),          p},
    {"bool.eq_false",         kBool,  Equal(p, 0),          !p},
    {"bool.ne_true",          kBool,  NotEqual(p, 1),       !p},
    {"bool.ne_false",         kBool,  NotEqual(p, 0),       p},
    {"bool.eq",               kBool,  Equal(p, q),          !(p ^ q)},
    {"bool.ne",               kBool,  NotEqual(p, q),       p ^ q},
    {"bool.lt",               kBool,  p < q,                !p & q},
    {"bool.le",               kBool,  p <= q,               !p | q},
    {"and.true",              kBool,  p & 1,                p},
    {"and.false",             kBool,  p & 0,                0},
    {"or.false",              kBool,  p | 0,                p},
    {"or.true",               kBool,  p | 1,                1},
    {"xor.false",             kBool,  p ^ 0,                p},
    {"xor.true",              kBool,  p ^ 1,                !p},
    {"and.same",              kBool,  p & p,                p},
    {"or.same",               kBool,  p | p,                p},
    {"xor.same",              kBool,  p ^ p,                0},
    {"not.not",               kBool,  !(!p),                p},
    {"and.not",               kBool,  p & !p,               0},
    {"or.not",                kBool,  p | !p,               1},
    {"xor.not",               kBool,  p ^ !p,               1},
    {"xor.not_both",          kBool,  !p ^ !q,              p ^ q},
    {"xor.not_one",           kBool,  !p ^ q,               !(p ^ q)},
    {"xor.cancel",            kBool,  (p ^ q) ^ q,          p},
    {"and.absorbs",           kBool,  p & (p | q),          p},
    {"or.absorbs",            kBool,  p | (p & q),          p},
    {"and.absorbs_not",       kBool,  p & (!p | q),         p & q},
    {"or.absorbs_not",        kBool,  p | (!p & q),         p | q},
    {"and.repeats",           kBool,  (p & q) & q,          p & q},
    {"or.repeats",            kBool,  (p | q) | q,          p | q},
    {"and.contradicts",       kBool,  (p & q) & !q,         0},
    {"or.covers",             kBool,  (p | q) | !q,         1},
    {"and.not_both",          kBool,  !p & !q,              !(p | q)},
    {"or.not_both",           kBool,  !p | !q,              !(p & q)},
    {"or.common",             kBool,  (p & q) | (p & r),    p & (q | r)},
    {"and.common",            kBool,  (p | q) & (p | r),    p | (q & r)},
};
// clang-format on

static_assert(WellFormed(kBoolRules));

}  // namespace

std::span<const Rule> BoolRules() { return kBoolRules; }

}  // namespace quern
