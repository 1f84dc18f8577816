#include "rewrite/rule_set.h"

namespace quern {

RuleSet::RuleSet(std::span<const Rule> table) {
  for (const Rule& rule : table) {
    for (const CompiledRule& compiled : CompileRule(rule)) {
      const auto row = std::make_shared<const CompiledRule>(compiled);
      for (size_t c = 0; c < kClasses; ++c) {
        if (!row->classes[c]) continue;
        by_root_[static_cast<size_t>(row->root)][c].push_back({row->child_mask, nullptr, row});
      }
    }
  }
}

RuleSet::RuleSet(std::span<const NativeRule> table) {
  for (const NativeRule& rule : table) {
    for (int op = 0; op < kOpCount; ++op) {
      if ((rule.roots & OpBit(static_cast<Op>(op))) == 0) continue;
      for (Entries& entries : by_root_[static_cast<size_t>(op)]) {
        entries.push_back({0, &rule, nullptr});
      }
    }
  }
}

RuleSet RuleSet::operator+(const RuleSet& other) const {
  RuleSet sum = *this;
  for (size_t op = 0; op < by_root_.size(); ++op) {
    for (size_t c = 0; c < kClasses; ++c) {
      const Entries& more = other.by_root_[op][c];
      sum.by_root_[op][c].insert(sum.by_root_[op][c].end(), more.begin(), more.end());
    }
  }
  return sum;
}

const UOp* RuleSet::Apply(const UOp* u, RuleContext& context, std::string_view* rule) const {
  const size_t root_class = static_cast<size_t>(RootClassOf(u));
  for (const Entry& entry : by_root_[static_cast<size_t>(u->op)][root_class]) {
    if ((entry.child_mask & ~u->child_mask) != 0) continue;
    const UOp* result = entry.native != nullptr ? entry.native->apply(u, context)
                                                : ApplyRule(*entry.row, u, context);
    // A commuted variant may give back what it was given.
    if (result == nullptr || result == u) continue;
    *rule = entry.native != nullptr ? entry.native->name : entry.row->rule->name;
    return result;
  }
  return nullptr;
}

}  // namespace quern
