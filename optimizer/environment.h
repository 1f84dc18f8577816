#ifndef QUERN_OPTIMIZER_ENVIRONMENT_H_
#define QUERN_OPTIMIZER_ENVIRONMENT_H_

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "optimizer/configuration.h"

namespace quern {

/// One environment variable that Quern reads.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view standard;  ///< what holds when it is not set
  std::string_view allowed;   ///< for people: "an integer from 0 to 1000"
  std::string_view meaning;
};

/// All of them; docs/configuration.md is this table.
std::span<const EnvironmentVariable> EnvironmentVariables();
/// The table as Markdown.
std::string EnvironmentTable();

using Environment = std::map<std::string, std::string>;
/// The variables of the process that concern Quern: those of the table, and all QUERN_*.
Environment ProcessEnvironment();

/// Strict: a value that is not allowed is an error that names the variable, the value and what is
/// allowed; so is an empty one. A QUERN_* name that does not exist is noted.
absl::StatusOr<PrepareConfig> ConfigFromEnvironment(const Environment& environment);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_ENVIRONMENT_H_
