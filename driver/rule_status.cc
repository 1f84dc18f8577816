#include "driver/rule_status.h"

#include <vector>

namespace quern {

/// The text of docs/rules.md, put into the program by driver/CMakeLists.txt.
extern const char* const kRulesPage;

namespace {

// The cells of a Markdown table row, without blanks and backticks. `\|` is no border.
std::vector<std::string> Cells(std::string_view row) {
  std::vector<std::string> cells(1);
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '|' && row[i - 1] != '\\') {
      cells.emplace_back();
    } else {
      cells.back() += row[i];
    }
  }
  for (std::string& c : cells) {
    const size_t begin = c.find_first_not_of(" `");
    c = begin == std::string::npos ? "" : c.substr(begin, c.find_last_not_of(" `") - begin + 1);
  }
  return cells;
}

}  // namespace

std::string RuleStatus(std::string_view rule) {
  std::string_view page = kRulesPage;
  size_t status = 0;  // the column of that name in the table at hand
  while (!page.empty()) {
    const std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(page.size(), line.size() + 1));
    if (line.empty() || line[0] != '|') {
      status = 0;
      continue;
    }
    const std::vector<std::string> cells = Cells(line);
    for (size_t i = 0; status == 0 && i < cells.size(); ++i) {
      if (cells[i] == "status") status = i;
    }
    if (cells[0] == rule && status > 0 && status < cells.size()) return cells[status];
  }
  return "unknown";
}

}  // namespace quern
