#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "driver/command.h"
#include "driver/report.h"
#include "driver/rule_status.h"
#include "rewrite/concat.h"
#include "rewrite/rules.h"

namespace quern {
namespace {

struct RulesOptions {
  std::string filter;
  std::string json;
};

bool Matches(const RulesOptions& options, std::string_view table, std::string_view name) {
  return options.filter.empty() || table.find(options.filter) != std::string_view::npos ||
         name.find(options.filter) != std::string_view::npos;
}

Json RuleReport(const RulesOptions& options) {
  Json rules = Json::array();
  for (const RuleTable& table : AllRuleTables()) {
    for (const Rule& r : table.rules) {
      if (!Matches(options, table.name, r.name)) continue;
      rules.push_back({{"table", table.name},
                       {"name", r.name},
                       {"domain", DomainName(r.domain)},
                       {"before", ToString(r.before)},
                       {"after", ToString(r.after)},
                       {"when", r.when.empty() ? "" : ToString(r.when)},
                       {"status", RuleStatus(r.name)}});
    }
  }
  for (const NativeRuleTable& table : AllNativeRuleTables()) {
    for (const NativeRule& r : table.rules) {
      if (!Matches(options, table.name, r.name)) continue;
      rules.push_back({{"table", table.name},
                       {"name", r.name},
                       {"domain", "code"},
                       {"reason", r.reason},
                       {"status", "not proved"}});
    }
  }
  return {{"rules", rules}};
}

absl::Status ShowRules(const RulesOptions& options) {
  const Json report = RuleReport(options);
  if (!options.json.empty()) return WriteJson(report, options.json);
  std::string table;
  for (const Json& r : report["rules"]) {
    const std::string here = r["table"];
    if (here != table) std::printf("%s%s\n", table.empty() ? "" : "\n", here.c_str());
    table = here;
    const std::string name = r["name"], domain = r["domain"], status = r["status"];
    std::printf("  %-36s %-14s %s\n", name.c_str(), domain.c_str(), status.c_str());
    if (r.contains("reason")) {
      std::printf("      %s\n", r["reason"].get<std::string>().c_str());
      continue;
    }
    const std::string before = r["before"], after = r["after"], when = r["when"];
    std::printf("      %s  →  %s%s%s\n", before.c_str(), after.c_str(),
                when.empty() ? "" : "   when ", when.c_str());
  }
  std::printf("\n%zu rules\n", report["rules"].size());
  return absl::OkStatus();
}

}  // namespace

void AddRulesCommand(CLI::App& app, CommandAction& action) {
  CLI::App* rules =
      app.add_subcommand("rules", "Show the rewrite rules: both sides, guards, proof status");
  const auto options = std::make_shared<RulesOptions>();
  rules->add_option("filter", options->filter, "Only rules or tables whose names hold this");
  rules->add_option("--json", options->json, "Write them as JSON to FILE, or - for the output")
      ->type_name("FILE");
  rules->callback([&action, options] { action = [options] { return ShowRules(*options); }; });
}

}  // namespace quern
