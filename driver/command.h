#ifndef QUERN_DRIVER_COMMAND_H_
#define QUERN_DRIVER_COMMAND_H_

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace quern {

/// What the command line asks for; run once it has been read.
using CommandAction = std::function<absl::Status()>;

// Each adds its subcommand to `app`. When the command line names it, `action` is set.
void AddRunCommand(CLI::App& app, CommandAction& action);
void AddExplainCommand(CLI::App& app, CommandAction& action);
void AddRulesCommand(CLI::App& app, CommandAction& action);
void AddCacheCommand(CLI::App& app, CommandAction& action);
void AddDevicesCommand(CLI::App& app, CommandAction& action);
void AddBenchCommand(CLI::App& app, CommandAction& action);

/// The whole program: reads the command line, runs what it asks for, prints errors. Returns the
/// exit code: 0, 1 when the command failed, 2 when the command line or the environment is wrong.
int RunQuern(int argc, char** argv);

}  // namespace quern

#endif  // QUERN_DRIVER_COMMAND_H_
