#include "rewrite/rule_set.h"

namespace quern {

RuleSet::RuleSet(std::span<const NativeRule> natives) {
  for (const NativeRule& rule : natives) {
    for (int op = 0; op < kOpCount; ++op) {
      if (rule.roots & OpBit(static_cast<Op>(op))) by_root_[op].push_back({&rule});
    }
  }
}

RuleSet RuleSet::operator+(const RuleSet& other) const {
  RuleSet sum = *this;
  for (int op = 0; op < kOpCount; ++op) {
    sum.by_root_[op].insert(sum.by_root_[op].end(), other.by_root_[op].begin(),
                            other.by_root_[op].end());
  }
  return sum;
}

const UOp* RuleSet::Apply(const UOp* u, RuleContext& context, std::string_view* rule) const {
  for (const Entry& entry : by_root_[static_cast<size_t>(u->op)]) {
    const UOp* result = entry.native->apply(u, context);
    if (result != nullptr) {
      *rule = entry.native->name;
      return result;
    }
  }
  return nullptr;
}

}  // namespace quern
