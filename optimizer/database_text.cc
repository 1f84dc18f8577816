#include <nlohmann/json.hpp>

#include "optimizer/database.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

using nlohmann::json;

// nullopt if the member is missing or is no string.
std::optional<std::string> StringMember(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

std::optional<TuningRecord> RecordFromJson(const json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto ast = StringMember(object, "ast");
  const auto device = StringMember(object, "device");
  const auto strategy = StringMember(object, "strategy");
  const auto llvm = StringMember(object, "llvm_version");
  const auto actions = StringMember(object, "actions");
  if (!ast || !device || !strategy || !llvm || !actions) return std::nullopt;
  const std::optional<Hash128> hash = HashFromHex(*ast);
  const auto schema = object.find("schema");
  const auto seconds = object.find("seconds");
  const auto details = object.find("details");
  const auto created = object.find("created");
  if (!hash || schema == object.end() || !schema->is_number_integer() || seconds == object.end() ||
      !seconds->is_number() || (details != object.end() && !details->is_object()) ||
      (created != object.end() && !created->is_number_integer())) {
    return std::nullopt;
  }
  TuningRecord r;
  r.key = {*hash, *device, *strategy, *llvm, schema->get<int>()};
  r.entry.actions = *actions;
  r.entry.seconds = seconds->get<double>();
  if (details != object.end()) r.entry.details = details->dump();
  if (created != object.end()) r.created = created->get<int64_t>();
  return r;
}

}  // namespace

std::string HashToHex(const Hash128& hash) {
  std::string text;
  for (const uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

std::optional<Hash128> HashFromHex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  uint64_t halves[2] = {0, 0};
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t digit = kDigits.find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    halves[i / 16] = halves[i / 16] << 4 | digit;
  }
  return Hash128{halves[0], halves[1]};
}

std::string ExportRecords(std::span<const TuningRecord> records) {
  std::string text;
  for (const TuningRecord& r : records) {
    json details = json::parse(r.entry.details, nullptr, /*allow_exceptions=*/false);
    if (!details.is_object()) details = json::object();
    const json object = {{"ast", HashToHex(r.key.ast)}, {"device", r.key.device},
                         {"strategy", r.key.strategy},  {"llvm_version", r.key.llvm_version},
                         {"schema", r.key.schema},      {"actions", r.entry.actions},
                         {"seconds", r.entry.seconds},  {"details", details},
                         {"created", r.created}};
    Append(text, object.dump(-1, ' ', false, json::error_handler_t::replace), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<TuningRecord>> ImportRecords(std::string_view lines) {
  std::vector<TuningRecord> records;
  for (int number = 1; !lines.empty(); ++number) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    std::optional<TuningRecord> r = RecordFromJson(object);
    if (!r) {
      return absl::InvalidArgumentError(
          Concat("line ", number, " is not a tuning record (a JSON object with ast, device, ",
                 "strategy, llvm_version, schema, actions and seconds)"));
    }
    records.push_back(*std::move(r));
  }
  return records;
}

}  // namespace quern
