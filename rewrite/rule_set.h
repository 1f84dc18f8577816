#ifndef QUERN_REWRITE_RULE_SET_H_
#define QUERN_REWRITE_RULE_SET_H_

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "rewrite/native_rule.h"

namespace quern {

/// Rules of several tables, arranged by the op they can apply to. A set is built once and shared:
/// applying it changes nothing in it.
class RuleSet {
 public:
  RuleSet() = default;
  explicit RuleSet(std::span<const NativeRule> natives);

  /// All rules of both; those of `other` are tried after one's own.
  RuleSet operator+(const RuleSet& other) const;

  /// The first rule that applies to `u`: its result, and its name in `rule`. nullptr if none does.
  const UOp* Apply(const UOp* u, RuleContext& context, std::string_view* rule) const;

 private:
  struct Entry {
    const NativeRule* native = nullptr;
  };
  std::array<std::vector<Entry>, kOpCount> by_root_;
};

}  // namespace quern

#endif  // QUERN_REWRITE_RULE_SET_H_
