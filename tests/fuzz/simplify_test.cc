#include "rewrite/simplify.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rewrite/bounds.h"
#include "rewrite/pseudo_code.h"
#include "tests/random_expression.h"

namespace quern {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// QUERN_FUZZ_SEED repeats a failure (the seed is part of every message); with QUERN_FUZZ_COUNT that
// many seeds are tried from there on.
uint64_t FirstSeed() { return FromEnvironment("QUERN_FUZZ_SEED", 1); }
uint64_t SeedCount() {
  const bool repeats = std::getenv("QUERN_FUZZ_SEED") != nullptr;
  return FromEnvironment("QUERN_FUZZ_COUNT", repeats ? 1 : 50000);
}

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

testing::AssertionResult ReachesAnEnd(UOpGraph& g, const UOp* u, uint64_t seed) {
  BoundsAnalysis bounds;
  RewriteOptions limited;
  limited.limit = 20000;
  const absl::Status status = Rewrite(g, u, SimplifyRules(), bounds, limited).status();
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "QUERN_FUZZ_SEED=" << seed << "\n"
                                     << ExpressionText(u) << "\n"
                                     << status;
}

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
  ASSERT_TRUE(ReachesAnEnd(g, u, seed));
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
  ASSERT_TRUE(ReachesAnEnd(g, u, seed));
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
