#include "rewrite/simplify.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rewrite/bounds.h"
#include "rewrite/pseudo_code.h"
#include "tests/random_expression.h"

namespace quern {
namespace {

// QUERN_FUZZ_SEED repeats a failure; the seed is part of every message.
uint64_t FirstSeed() {
  const char* seed = std::getenv("QUERN_FUZZ_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}
uint64_t SeedCount() { return std::getenv("QUERN_FUZZ_SEED") != nullptr ? 1 : 50000; }

struct Memory {
  uint64_t seed;
  Scalar operator()(ScalarType type, int64_t offset) const {
    static constexpr double kFloats[] = {0.0,   -0.0, 1,        -1,        2.5, -3,
                                         1e-40, 1e30, INFINITY, -INFINITY, NAN, 0.1};
    uint64_t h = seed * 0x9e3779b97f4a7c15ull +
                 static_cast<uint64_t>(offset) * 0xd1b54a32d192ed03ull +
                 static_cast<uint64_t>(type) * 77;
    h ^= h >> 29;
    Scalar s;
    if (IsFloat(type)) {
      s.f = RoundFloat(type, kFloats[h % 12]);
    } else {
      // Small values and extreme ones alike.
      const int64_t raw = static_cast<int64_t>(h >> 8);
      s.i = type == ScalarType::kBool ? raw & 1 : WrapInteger(type, h % 3 == 0 ? raw : raw % 9 - 4);
    }
    return s;
  }
};

class Trace : public RewriteObserver {
 public:
  void OnRewrite(std::string_view rule, const UOp* before, const UOp* after) override {
    text += "\n  " + std::string(rule) + ": " + ExpressionText(before) + "  ->  " +
            ExpressionText(after);
  }
  std::string text;
};

void CheckOne(uint64_t seed) {
  static constexpr DType kTypes[] = {kIndexType, kIndexType,
                                     kIndexType, kBoolType,
                                     kI32Type,   kI8Type,
                                     kF32Type,   DType(ScalarType::kU8),
                                     kF16Type,   DType(ScalarType::kU64),
                                     kI64Type};
  UOpGraph g;
  RandomExpression random(g, seed);
  const DType type = kTypes[random.Below(11)];
  const UOp* u = random.Make(type, 2 + static_cast<int>(random.Below(5)));
  BoundsAnalysis first_bounds;
  RewriteOptions limited;
  limited.limit = 20000;
  const absl::StatusOr<const UOp*> rewritten =
      Rewrite(g, u, SimplifyRules(), first_bounds, limited);
  ASSERT_TRUE(rewritten.ok()) << "QUERN_FUZZ_SEED=" << seed << "\n"
                              << ExpressionText(u) << "\n"
                              << rewritten.status();
  const UOp* simple = Simplify(g, u);
  const auto describe = [&] {
    Trace trace;
    SimplifyOptions options;
    options.observer = &trace;
    Simplify(g, u, options);
    return "QUERN_FUZZ_SEED=" + std::to_string(seed) + "\n" + ExpressionText(u) + "\n" +
           ExpressionText(simple) + trace.text;
  };
  ASSERT_TRUE(simple->dtype == u->dtype) << describe();
  BoundsAnalysis bounds;
  const Bounds before = bounds.Of(u);
  const Bounds after = bounds.Of(simple);
  for (int i = 0; i < 12; ++i) {
    const Memory memory{seed * 16 + static_cast<uint64_t>(i)};
    std::vector<Scalar> assignment = random.Assignment(u);
    const std::optional<Scalar> expected = ValueOf(u, assignment, memory);
    const std::optional<Scalar> value = ValueOf(simple, assignment, memory);
    if (!expected.has_value()) continue;  // A kernel with such an index is refused.
    if (!value.has_value()) continue;
    ASSERT_TRUE(SameValue(type.scalar, *expected, *value))
        << expected->i << " became " << value->i << "\n"
        << describe();
    if (IsFloat(type) || type.scalar == ScalarType::kU64) continue;
    ASSERT_TRUE(before.min <= expected->i && expected->i <= before.max) << describe();
    ASSERT_TRUE(after.min <= expected->i && expected->i <= after.max) << describe();
  }
  ASSERT_EQ(Simplify(g, simple), simple) << describe();
}

void CheckVector(uint64_t seed) {
  UOpGraph g;
  RandomExpression random(g, seed);
  static constexpr DType kTypes[] = {kIndexType, kBoolType, kI32Type};
  const DType type = kTypes[random.Below(3)];
  const int lanes = 4;
  const UOp* u = random.MakeVector(type, lanes, 1 + static_cast<int>(random.Below(4)));
  if (random.Below(4) == 0) {
    u = g.Make(Op::kExtract, type, {u}, {static_cast<int64_t>(random.Below(lanes)), 0});
  }
  const UOp* simple = Simplify(g, u);
  ASSERT_TRUE(simple->dtype == u->dtype) << "QUERN_FUZZ_SEED=" << seed;
  for (int i = 0; i < 12; ++i) {
    const Memory memory{seed * 16 + static_cast<uint64_t>(i)};
    const std::vector<Scalar> assignment = random.Assignment(u);
    const std::optional<Scalar> expected = ValueOf(u, assignment, memory, i % lanes);
    const std::optional<Scalar> value = ValueOf(simple, assignment, memory, i % lanes);
    if (!expected.has_value() || !value.has_value()) continue;
    ASSERT_TRUE(SameValue(type.scalar, *expected, *value)) << "QUERN_FUZZ_SEED=" << seed << "\n"
                                                           << ExpressionText(u) << "\n"
                                                           << ExpressionText(simple);
  }
  ASSERT_EQ(Simplify(g, simple), simple) << "QUERN_FUZZ_SEED=" << seed << "\n"
                                         << ExpressionText(simple) << "\n"
                                         << ExpressionText(Simplify(g, simple));
}

TEST(SimplifyFuzz, SimplifiedVectorsEqualUnsimplified) {
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + SeedCount(); ++seed) {
    CheckVector(seed);
    if (HasFatalFailure()) return;
  }
}

TEST(SimplifyFuzz, SimplifiedEqualsUnsimplified) {
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + SeedCount(); ++seed) {
    CheckOne(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quern
