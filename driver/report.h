#ifndef QUERN_DRIVER_REPORT_H_
#define QUERN_DRIVER_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quern {

/// Members keep the order in which they are added.
using Json = nlohmann::ordered_json;

/// Writes a report as one JSON object to a file, or to the standard output for "-".
absl::Status WriteJson(const Json& report, const std::string& path);

/// Tells the user something on the standard error output: "quern: note: …".
void PrintNotes(const std::vector<std::string>& notes);

/// "1.23 ms", "45.6 us", "2.10 s": three digits that count.
std::string SecondsText(double seconds);
/// "12.3 MB", in powers of 1000.
std::string BytesText(double bytes);

}  // namespace quern

#endif  // QUERN_DRIVER_REPORT_H_
