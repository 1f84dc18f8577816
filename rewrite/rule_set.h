#ifndef QUERN_REWRITE_RULE_SET_H_
#define QUERN_REWRITE_RULE_SET_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rewrite/match.h"
#include "rewrite/native_rule.h"
#include "rewrite/rule.h"

namespace quern {

/// Rules of several tables, arranged by the op and the type of the nodes that they can apply to. A
/// set is built once and shared: applying it changes nothing in it.
class RuleSet {
 public:
  RuleSet() = default;
  /// The table must outlive the set.
  explicit RuleSet(std::span<const Rule> table);
  explicit RuleSet(std::span<const NativeRule> table);

  /// All rules of both; those of `other` are tried after one's own.
  RuleSet operator+(const RuleSet& other) const;

  /// The first rule that changes `u`: its result, and its name in `rule`. nullptr if none does.
  const UOp* Apply(const UOp* u, RuleContext& context, std::string_view* rule) const;

 private:
  static constexpr size_t kClasses = 5;
  struct Entry {
    uint64_t child_mask = 0;  ///< ops that must be among the sources
    const NativeRule* native = nullptr;
    std::shared_ptr<const CompiledRule> row;
  };
  using Entries = std::vector<Entry>;
  std::array<std::array<Entries, kClasses>, kOpCount> by_root_;
};

}  // namespace quern

#endif  // QUERN_REWRITE_RULE_SET_H_
