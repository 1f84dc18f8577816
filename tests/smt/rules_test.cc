#include "rewrite/rules.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "tests/smt/rule_prover.h"

// Proves every row of every table and compares with docs/rules.md. QUERN_UPDATE_RULES=1 writes that
// page anew.

namespace quern {
namespace {

constexpr char kPage[] = QUERN_SOURCE_DIR "/docs/rules.md";

struct Row {
  const RuleTable* table;
  const Rule* rule;
  Verdict verdict;
};

const std::vector<Row>& Verdicts() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    RuleProver prover;
    for (const RuleTable& table : AllRuleTables()) {
      for (const Rule& rule : table.rules) {
        const auto start = std::chrono::steady_clock::now();
        all.push_back({&table, &rule, prover.Prove(rule)});
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (took.count() > 3) std::cout << rule.name << " took " << took.count() << " s\n";
      }
    }
    return all;
  }();
  return rows;
}

// The pipe of a table cell, and what Markdown would read as emphasis.
std::string Cell(const std::string& text) {
  if (text.empty()) return "";
  std::string cell = "`";
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell + "`";
}

std::string Page() {
  int counts[4] = {};
  for (const Row& row : Verdicts()) ++counts[static_cast<int>(row.verdict.certainty)];
  std::ostringstream out;
  out << "# Rewrite rules\n\n"
      << "Written by the test `smt.rules` (`QUERN_UPDATE_RULES=1`); do not edit. Where `before` "
         "stands and `when` holds,\n`after` may stand. `/` and `%` of integers round to minus "
         "infinity; `x y z w` are any values, `p q r` any bools,\n`c0`… constants; `vmin(x)` and "
         "`vmax(x)` are bounds that range analysis has found.\n\n"
      << "* *proved*: by Z3, for all values and constants, in the sorts named;\n"
      << "* *grid*: by Z3, for all values, with numbers for the constants (or in a small float "
         "format only);\n"
      << "* *tested*: not proved; compared on random values.\n\n"
      << Verdicts().size() << " rules: " << counts[0] << " proved, " << counts[1] << " grid, "
      << counts[2] << " tested.\n";
  for (const RuleTable& table : AllRuleTables()) {
    out << "\n## " << table.name << ": " << table.about << "\n\n"
        << "| rule | domain | before | after | when | status |\n|---|---|---|---|---|---|\n";
    for (const Row& row : Verdicts()) {
      if (row.table != &table) continue;
      out << "| " << row.rule->name << " | " << DomainName(row.rule->domain) << " | "
          << Cell(ToString(row.rule->before)) << " | " << Cell(ToString(row.rule->after)) << " | "
          << Cell(ToString(row.rule->when)) << " | " << CertaintyName(row.verdict.certainty) << ": "
          << row.verdict.detail << " |\n";
    }
  }
  out << "\n## Rules that need code\n\nNot proved; fuzzed against direct evaluation "
         "(`fuzz.simplify`).\n\n| rule | table | why it is no row |\n|---|---|---|\n";
  for (const NativeRuleTable& table : AllNativeRuleTables()) {
    for (const NativeRule& rule : table.rules) {
      out << "| " << rule.name << " | " << table.name << " | " << rule.reason << " |\n";
    }
  }
  return out.str();
}

// The status of each rule in the page as it is.
std::map<std::string, std::string> RecordedStatuses() {
  std::map<std::string, std::string> statuses;
  std::ifstream in(kPage);
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("| ", 0) != 0) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    const size_t last = line.rfind(" | ");
    statuses[name] = line.substr(last + 3, line.find(':', last) - last - 3);
  }
  return statuses;
}

TEST(RulesTest, NoRuleIsRefuted) {
  for (const Row& row : Verdicts()) {
    EXPECT_NE(row.verdict.certainty, Certainty::kRefuted)
        << row.rule->name << ": " << ToString(row.rule->before) << "  ->  "
        << ToString(row.rule->after) << "  when " << ToString(row.rule->when) << "\n"
        << row.verdict.detail;
  }
}

TEST(RulesTest, NoStatusIsWorseThanRecorded) {
  if (std::getenv("QUERN_UPDATE_RULES") != nullptr) {
    std::ofstream(kPage) << Page();
  }
  const std::map<std::string, std::string> recorded = RecordedStatuses();
  for (const Row& row : Verdicts()) {
    const auto it = recorded.find(std::string(row.rule->name));
    ASSERT_TRUE(it != recorded.end())
        << row.rule->name << " is not in docs/rules.md; run this test with QUERN_UPDATE_RULES=1";
    Certainty was = Certainty::kTested;
    for (Certainty c : {Certainty::kProved, Certainty::kGrid}) {
      if (it->second == CertaintyName(c)) was = c;
    }
    // The solver's tactics for products of integers have time limits of their own, in seconds,
    // which a busy machine can exceed: a proof that was found once is looked for again.
    Verdict verdict = row.verdict;
    for (int attempt = 0; attempt < 4 && verdict.certainty > was; ++attempt) {
      verdict = RuleProver().Prove(*row.rule);
    }
    EXPECT_LE(static_cast<int>(verdict.certainty), static_cast<int>(was))
        << row.rule->name << " was " << it->second << " and is now "
        << CertaintyName(verdict.certainty) << " " << verdict.detail;
  }
}

}  // namespace
}  // namespace quern
