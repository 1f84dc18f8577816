// Text in, text out: <name>.<pass>.in.uop is read, the pass is applied, and the result is compared
// with <name>.<pass>.out.uop (or .out.txt where it is no graph). `--update` writes the results
// instead; a change of a golden file is then reviewed like any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "codegen/contract_scratch.h"
#include "codegen/linearize.h"
#include "codegen/split_reductions.h"
#include "codegen/two_stage.h"
#include "rewrite/concat.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/simplify.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tests/unit/handmade_targets.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

bool update = false;

struct GoldenPass {
  std::string_view name;
  std::string_view suffix;
  std::string (*run)(UOpGraph& g, const UOp* sink);
};

constexpr GoldenPass kPasses[] = {
    {"text", ".uop", [](UOpGraph&, const UOp* sink) { return ToText(sink); }},
    {"simplify", ".uop", [](UOpGraph& g, const UOp* sink) { return ToText(Simplify(g, sink)); }},
    {"pseudo-code", ".txt", [](UOpGraph&, const UOp* sink) { return PseudoCode(sink); }},
    {"contract", ".txt",
     [](UOpGraph& g, const UOp* sink) {
       const UOp* parts = SplitReductions(g, SplitPhases(g, Simplify(g, sink)));
       return PseudoCode(ContractScratch(g, Linearize(g, parts, Avx512Target())));
     }},
};

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

fs::path Folder() { return fs::path(QUERN_SOURCE_DIR) / "tests" / "golden"; }

// The names of the inputs without ".in.uop", sorted.
std::vector<std::string> Cases() {
  std::vector<std::string> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(Folder())) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".in.uop")) cases.push_back(name.substr(0, name.size() - 7));
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, ResultIsAsRecorded) {
  const std::string& name = GetParam();
  const std::string pass_name = name.substr(name.rfind('.') + 1);
  const auto* pass = std::find_if(std::begin(kPasses), std::end(kPasses),
                                  [&](const GoldenPass& p) { return p.name == pass_name; });
  ASSERT_NE(pass, std::end(kPasses)) << "no pass is called " << pass_name;

  UOpGraph g;
  const absl::StatusOr<const UOp*> sink = ParseText(g, Read(Folder() / (name + ".in.uop")));
  ASSERT_TRUE(sink.ok()) << name << ".in.uop: " << sink.status();
  const std::string result = pass->run(g, *sink);
  const fs::path recorded = Folder() / Concat(name, ".out", pass->suffix);
  if (update) {
    std::ofstream(recorded) << result;
    return;
  }
  EXPECT_EQ(result, Read(recorded)) << recorded << " (run with --update to record the new result)";
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update") quern::update = true;
  }
  return RUN_ALL_TESTS();
}
