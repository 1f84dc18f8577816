#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "driver/command.h"
#include "driver/report.h"
#include "optimizer/database.h"
#include "optimizer/environment.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

absl::StatusOr<std::unique_ptr<TuningDatabase>> OpenDatabase() {
  absl::StatusOr<PrepareConfig> config = PrepareConfig::FromEnvironment();
  if (!config.ok()) return config.status();
  DatabaseOptions options;
  if (!config->cache_folder.empty()) options.folder = config->cache_folder;
  std::unique_ptr<TuningDatabase> db = TuningDatabase::Open(std::move(options));
  if (!db->enabled()) return absl::FailedPreconditionError("the cache is not available");
  return db;
}

std::string TimeText(int64_t created) {
  const std::time_t t = created;
  std::tm parts{};
  char text[32] = "";
  if (localtime_r(&t, &parts) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts);
  }
  return text;
}

absl::Status ListCache(const std::string& json) {
  auto db = OpenDatabase();
  if (!db.ok()) return db.status();
  const absl::StatusOr<std::vector<TuningRecord>> records = (*db)->List();
  if (!records.ok()) return records.status();
  const absl::StatusOr<TuningDatabase::ObjectStats> objects = (*db)->Objects();
  if (!objects.ok()) return objects.status();
  if (!json.empty()) {
    Json report = {{"path", (*db)->path()}, {"entries", Json::array()}};
    for (const TuningRecord& r : *records) {
      report["entries"].push_back(Json::parse(ExportRecords({&r, 1}), nullptr, false));
    }
    report["objects"] = {{"count", objects->count}, {"bytes", objects->bytes}};
    return WriteJson(report, json);
  }
  for (const TuningRecord& r : *records) {
    std::printf("%s  %-16s %9s  %s\n    %s\n", HashToHex(r.key.ast).substr(0, 12).c_str(),
                TimeText(r.created).c_str(), SecondsText(r.entry.seconds).c_str(),
                r.key.strategy.c_str(),
                r.entry.actions.empty() ? "(no actions)" : r.entry.actions.c_str());
  }
  std::printf("%zu tuned kernels, %lld pieces of object code (%s) in %s\n", records->size(),
              static_cast<long long>(objects->count),
              BytesText(static_cast<double>(objects->bytes)).c_str(), (*db)->path().c_str());
  return absl::OkStatus();
}

absl::Status ExportCache(const std::string& path) {
  auto db = OpenDatabase();
  if (!db.ok()) return db.status();
  const absl::StatusOr<std::vector<TuningRecord>> records = (*db)->List();
  if (!records.ok()) return records.status();
  const std::string text = ExportRecords(*records);
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return absl::OkStatus();
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnknownError(Concat("writing ", path, ": ", std::strerror(errno)));
  std::printf("%zu entries written to %s\n", records->size(), path.c_str());
  return absl::OkStatus();
}

absl::Status ImportCache(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::NotFoundError(Concat("opening ", path, ": ", std::strerror(errno)));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const absl::StatusOr<std::vector<TuningRecord>> records = ImportRecords(text);
  if (!records.ok()) {
    return absl::InvalidArgumentError(Concat(path, ": ", records.status().message()));
  }
  auto db = OpenDatabase();
  if (!db.ok()) return db.status();
  const absl::StatusOr<int> changed = (*db)->Add(*records);
  if (!changed.ok()) return changed.status();
  std::printf("%zu entries read, %d of them new or faster\n", records->size(), *changed);
  return absl::OkStatus();
}

absl::Status ClearCache() {
  auto db = OpenDatabase();
  if (!db.ok()) return db.status();
  if (absl::Status s = (*db)->Clear(); !s.ok()) return s;
  std::printf("cleared %s\n", (*db)->path().c_str());
  return absl::OkStatus();
}

absl::Status PrintPath() {
  auto db = OpenDatabase();
  if (!db.ok()) return db.status();
  std::printf("%s\n", (*db)->path().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCacheCommand(CLI::App& app, CommandAction& action) {
  CLI::App* cache = app.add_subcommand("cache", "Results of searches and object code on disk");
  cache->require_subcommand(1);
  // Each subcommand keeps its argument in memory that its callback owns.
  const auto json = std::make_shared<std::string>();
  CLI::App* list = cache->add_subcommand("list", "Show what is stored");
  list->add_option("--json", *json, "Write the list as JSON to FILE, or - for the output")
      ->type_name("FILE");
  list->callback([&action, json] { action = [json] { return ListCache(*json); }; });

  const auto target = std::make_shared<std::string>("-");
  CLI::App* out = cache->add_subcommand("export", "Write all entries, one JSON object a line");
  out->add_option("file", *target, "FILE, or - for the output");
  out->callback([&action, target] { action = [target] { return ExportCache(*target); }; });

  const auto origin = std::make_shared<std::string>();
  CLI::App* in = cache->add_subcommand("import", "Add entries that `export` has written");
  in->add_option("file", *origin, "FILE, or - for the input")->required();
  in->callback([&action, origin] { action = [origin] { return ImportCache(*origin); }; });

  cache->add_subcommand("clear", "Delete everything")->callback([&action] { action = ClearCache; });
  cache->add_subcommand("path", "Show where the database is")->callback([&action] {
    action = PrintPath;
  });
}

}  // namespace quern
