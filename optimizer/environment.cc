#include "optimizer/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "rewrite/concat.h"

namespace quern {
namespace {

constexpr std::string_view kSwitch = "0 or 1";

constexpr EnvironmentVariable kVariables[] = {
    {"BEAM", "0", "an integer from 0 to 1000",
     "Width of the beam search; 0 takes the heuristic's schedule without a search."},
    {"NOOPT", "0", kSwitch,
     "1 leaves all loops as they are written. Wins over `BEAM`, and says so."},
    {"QUERN_BEAM_SECONDS", "15", "a number of seconds above 0",
     "Time limit for the search of one kernel."},
    {"QUERN_THREADS", "0", "an integer from 0 to 1024",
     "Threads that a kernel may use; 0 means all cores."},
    {"QUERN_CACHE", "1", kSwitch, "0 neither looks up nor stores results and object code."},
    {"QUERN_CACHE_DIR", "$XDG_CACHE_HOME/quern, else ~/.cache/quern", "a path",
     "Where results and object code are kept."},
    {"QUERN_FLOAT_REASSOC", "0", kSwitch,
     "1 allows algebra that is not exact for floats, such as `x*0 → 0`."},
    {"QUERN_VERIFY", "0", kSwitch, "1 verifies the graph after every pass."},
    {"QUERN_REWRITE_LIMIT", "no limit", "an integer that is not negative",
     "Stops rewriting after so many steps: bisects a wrong rule."},
    {"QUERN_SEED", "0", "an integer that is not negative",
     "Seed of the random inputs on which candidates are measured."},
    {"QUERN_WORKER", "beside the program", "a path",
     "The program `quern-worker`, in which candidates are measured."},
};

absl::Status BadValue(std::string_view name, std::string_view value) {
  const auto* row = std::find_if(std::begin(kVariables), std::end(kVariables),
                                 [&](const EnvironmentVariable& v) { return v.name == name; });
  return absl::InvalidArgumentError(Concat("environment variable ", name, "=\"", value,
                                           "\": must be ", row->allowed, " (unset: ", row->standard,
                                           ")"));
}

// Digits only: no sign, blank, point or 0x.
std::optional<int64_t> Digits(std::string_view text, int64_t max) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size() ||
      n > max) {
    return std::nullopt;
  }
  return n;
}

// Reads variables out of an environment; the first bad value is kept.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  const std::string* Text(const char* name) {
    const auto it = environment_.find(name);
    if (it == environment_.end()) return nullptr;
    if (it->second.empty()) Refuse(name, it->second);
    return &it->second;
  }
  std::optional<int64_t> Integer(const char* name, int64_t max) {
    const std::string* text = Text(name);
    if (text == nullptr) return std::nullopt;
    const std::optional<int64_t> n = Digits(*text, max);
    if (!n) Refuse(name, *text);
    return n;
  }
  std::optional<bool> Switch(const char* name) {
    const std::optional<int64_t> n = Integer(name, 1);
    return n ? std::optional<bool>(*n == 1) : std::nullopt;
  }
  std::optional<double> Seconds(const char* name) {
    const std::string* text = Text(name);
    if (text == nullptr) return std::nullopt;
    double x = 0;
    const char* end = text->data() + text->size();
    const auto result = std::from_chars(text->data(), end, x, std::chars_format::fixed);
    if (result.ec == std::errc() && result.ptr == end && x > 0 && x <= 1e9) return x;
    Refuse(name, *text);
    return std::nullopt;
  }
  const absl::Status& status() const { return status_; }

 private:
  void Refuse(std::string_view name, std::string_view value) {
    if (status_.ok()) status_ = BadValue(name, value);
  }

  const Environment& environment_;
  absl::Status status_;
};

}  // namespace

std::span<const EnvironmentVariable> EnvironmentVariables() { return kVariables; }

std::string EnvironmentTable() {
  std::string text = "| variable | default | allowed | meaning |\n|---|---|---|---|\n";
  for (const EnvironmentVariable& v : kVariables) {
    Append(text, "| `", v.name, "` | ", v.standard, " | ", v.allowed, " | ", v.meaning, " |\n");
  }
  return text;
}

Environment ProcessEnvironment() {
  Environment found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == "BEAM" || name == "NOOPT" || name.starts_with("QUERN_")) {
      found[std::string(name)] = text.substr(equals + 1);
    }
  }
  return found;
}

absl::StatusOr<PrepareConfig> ConfigFromEnvironment(const Environment& environment) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  Reader read(environment);
  PrepareConfig config;
  const std::optional<int64_t> beam = read.Integer("BEAM", 1000);
  const bool noopt = read.Switch("NOOPT").value_or(false);
  const std::optional<double> seconds = read.Seconds("QUERN_BEAM_SECONDS");
  if (beam.value_or(0) > 0) {
    OptStrategy::Beam search{.width = static_cast<int>(*beam)};
    if (seconds) search.seconds = *seconds;
    config.strategy = search;
  }
  if (noopt) {
    if (config.strategy.As<OptStrategy::Beam>() != nullptr) {
      config.notes.push_back(
          Concat("NOOPT=1 wins over BEAM=", *beam, ": kernels run unoptimised, without a search"));
    }
    config.strategy = OptStrategy::NoOpt{};
  }
  config.threads = static_cast<int>(read.Integer("QUERN_THREADS", 1024).value_or(0));
  config.cache = read.Switch("QUERN_CACHE").value_or(true);
  if (const std::string* folder = read.Text("QUERN_CACHE_DIR")) config.cache_folder = *folder;
  read.Text(
      "QUERN_WORKER");  // runtime/timing_client.h looks it up itself; here it is only checked.
  config.float_reassoc = read.Switch("QUERN_FLOAT_REASSOC").value_or(false);
  config.verify = read.Switch("QUERN_VERIFY").value_or(false);
  config.rewrite_limit = read.Integer("QUERN_REWRITE_LIMIT", kAny);
  config.seed = static_cast<uint64_t>(read.Integer("QUERN_SEED", kAny).value_or(0));
  if (!read.status().ok()) return read.status();
  for (const auto& [name, value] : environment) {
    const bool known = std::any_of(std::begin(kVariables), std::end(kVariables),
                                   [&](const EnvironmentVariable& v) { return v.name == name; });
    if (!known) config.notes.push_back(Concat(name, " is set, but Quern has no such variable"));
  }
  return PrepareConfig::Builder(std::move(config)).Build();
}

}  // namespace quern
