#ifndef QUERN_REWRITE_MATCH_H_
#define QUERN_REWRITE_MATCH_H_

#include <optional>
#include <span>
#include <vector>

#include "rewrite/native_rule.h"
#include "rewrite/rule.h"

namespace quern {

/// A row made ready for matching: one order of the operands of its commutative operations.
struct CompiledRule {
  const Rule* rule = nullptr;
  Expr before;
  Op root = Op::kAdd;
  uint64_t child_mask = 0;    ///< ops that must be among the sources of a match
  bool root_is_bool = false;  ///< the pattern is a bool whatever the domain
  /// The class of nodes that can match, by RootClass.
  std::array<bool, 5> classes{};
};

/// Nodes with the same op fall into classes by the type of what they compute with.
enum class RootClass : uint8_t { kIndex, kInteger, kBool, kFloat, kNone };
RootClass RootClassOf(const UOp* u);

/// The row once for each distinct order of operands (constants stay on the right).
std::vector<CompiledRule> CompileRule(const Rule& rule);

/// What the captures of a pattern stand for.
struct Binding {
  std::array<const UOp*, 4> values{};
  std::array<const UOp*, 3> predicates{};
  std::array<const UOp*, 4> constants{};
  DType dtype;  ///< of values and constants; void until one is bound
};

bool Match(const CompiledRule& row, const UOp* u, Binding& binding);
/// Whether the guard holds; false as well where range analysis cannot tell.
bool GuardHolds(const Rule& rule, const Binding& binding, BoundsAnalysis& bounds);
/// The result of a row; nullptr if a constant in it has no value (Index beyond 64 bits).
const UOp* BuildResult(const Rule& rule, const UOp* u, const Binding& binding, UOpGraph& g);

/// All three: nullptr if the row does not apply.
const UOp* ApplyRule(const CompiledRule& row, const UOp* u, RuleContext& context);

}  // namespace quern

#endif  // QUERN_REWRITE_MATCH_H_
