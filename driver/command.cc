#include "driver/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace quern {

int RunQuern(int argc, char** argv) {
  CLI::App app("Quern grinds tensor kernels: formula in, fast machine code out.", "quern");
  app.set_version_flag("--version", QUERN_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  CommandAction action;
  AddRunCommand(app, action);
  AddExplainCommand(app, action);
  AddBenchCommand(app, action);
  AddRulesCommand(app, action);
  AddCacheCommand(app, action);
  AddDevicesCommand(app, action);
  app.failure_message([](const CLI::App* failed, const CLI::Error& e) {
    return "quern: " + std::string(e.what()) + "\nTry `" + failed->get_name() +
           " --help` for what is possible.\n";
  });
  // CLI11 would only say that a subcommand is missing.
  if (argc > 1 && argv[1][0] != '-') {
    std::string known;
    bool found = false;
    for (const CLI::App* command : app.get_subcommands({})) {
      known += " " + command->get_name();
      found = found || command->get_name() == argv[1];
    }
    if (!found) {
      std::fprintf(stderr, "quern: there is no command `%s`; there are:%s\n", argv[1],
                   known.c_str());
      return 2;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  const absl::Status status = action();
  if (status.ok()) return 0;
  std::fflush(stdout);
  const std::string message(status.message());
  std::fprintf(stderr, "quern: %s\n", message.c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace quern
