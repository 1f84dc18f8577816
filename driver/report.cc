#include "driver/report.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>

#include "rewrite/concat.h"

namespace quern {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

// Three digits in the largest unit that is not above the value.
std::string WithUnit(double value, std::span<const Unit> units) {
  const Unit* unit = &units.back();
  for (const Unit& u : units) {
    if (std::fabs(value) >= u.size * 0.9995) {
      unit = &u;
      break;
    }
  }
  const double x = value / unit->size;
  const double size = std::fabs(x);
  const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f ", digits, x);
  return Concat(std::string_view(text.data()), unit->name);
}

}  // namespace

absl::Status WriteJson(const Json& report, const std::string& path) {
  const std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return absl::OkStatus();
  }
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (written && closed) return absl::OkStatus();
  return absl::UnknownError(Concat("writing the report ", path, ": ", std::strerror(errno)));
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "quern: note: %s\n", note.c_str());
}

std::string SecondsText(double seconds) {
  constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  return WithUnit(seconds, kUnits);
}

std::string BytesText(double bytes) {
  constexpr Unit kUnits[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};
  return WithUnit(bytes, kUnits);
}

}  // namespace quern
