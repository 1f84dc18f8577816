#ifndef QUERN_DRIVER_RULE_STATUS_H_
#define QUERN_DRIVER_RULE_STATUS_H_

#include <string>
#include <string_view>

namespace quern {

/// What docs/rules.md said of a rule when this program was built ("proved", …); "unknown" if it did
/// not know the rule.
std::string RuleStatus(std::string_view rule);

}  // namespace quern

#endif  // QUERN_DRIVER_RULE_STATUS_H_
