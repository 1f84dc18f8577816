#include "rewrite/rules.h"

namespace quern {
namespace {

using namespace rule_language;  // NOLINT(google-build-using-namespace)

constexpr Domain kIntegral = Domain::kIntegral;

// Sums lean to the left, products of a constant stand inside, constants stand last. Everything
// here holds for mathematical integers and modulo 2^width alike.
// clang-format off
constexpr Rule kRingRules[] = {
    // name                    domain     before                  after              when
    {"add.const_right",        kIntegral, c0 + x,                 x + c0},
    {"mul.const_right",        kIntegral, c0 * x,                 x * c0},
    {"sub.as_add",             kIntegral, x - y,                  x + y * -1},
    {"neg.as_mul",             kIntegral, -x,                     x * -1},
    {"muladd.apart",           kIntegral, muladd(x, y, z),        x * y + z},
    {"add.zero",               kIntegral, x + 0,                  x},
    {"mul.one",                kIntegral, x * 1,                  x},
    {"mul.zero",               kIntegral, x * 0,                  0},
    {"add.consts",             kIntegral, (x + c0) + c1,          x + (c0 + c1)},
    {"mul.consts",             kIntegral, (x * c0) * c1,          x * (c0 * c1)},
    {"add.const_out",          kIntegral, (x + c0) + y,           (x + y) + c0},
    {"add.const_out_right",    kIntegral, x + (y + c0),           (x + y) + c0},
    {"mul.const_out",          kIntegral, (x * c0) * y,           (x * y) * c0},
    {"add.lean_left",          kIntegral, x + (y + z),            (x + y) + z},
    {"mul.lean_left",          kIntegral, x * (y * z),            (x * y) * z},
    {"mul.distribute",         kIntegral, (x + y) * c0,           x * c0 + y * c0},
    {"add.cancel",             kIntegral, x + x * -1,             0},
    {"add.cancel_left",        kIntegral, (y + x) + x * -1,       y},
    {"add.cancel_negated",     kIntegral, (y + x * -1) + x,       y},
    {"add.cancel_scaled",      kIntegral, x * c0 + x * c1,        0,                 Equal(c0 + c1, 0)},
    {"add.double",             kIntegral, x + x,                  x * 2},
    {"add.like",               kIntegral, x * c0 + x,             x * (c0 + 1)},
    {"add.like_scaled",        kIntegral, x * c0 + x * c1,        x * (c0 + c1)},
    {"add.like_left",          kIntegral, (y + x) + x,            y + x * 2},
    {"add.like_left_scaled",   kIntegral, (y + x * c0) + x,       y + x * (c0 + 1)},
    {"add.like_right_scaled",  kIntegral, (y + x) + x * c0,       y + x * (c0 + 1)},
    {"add.like_both_scaled",   kIntegral, (y + x * c0) + x * c1,  y + x * (c0 + c1)},
    {"abs.nonneg",             kIntegral, abs(x),                 x,                 nonneg(x)},
    {"abs.abs",                kIntegral, abs(abs(x)),            abs(x)},
    {"abs.negated",            Domain::kIndex, abs(x * -1),       abs(x)},
    {"abs.nonpos",             kIntegral, abs(x),                 x * -1,            vmax(x) <= 0},
};
// clang-format on

static_assert(WellFormed(kRingRules));

}  // namespace

std::span<const Rule> RingRules() { return kRingRules; }

}  // namespace quern
