// Reads the sources themselves: which folder includes what, how long files are and what they are
// called. The rules are those of CONTRIBUTING.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace quern {
namespace {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

// What each folder may include: folders of this project, and packages by the first part of their
// headers' names. The standard library and POSIX are free.
struct FolderRule {
  Names folders;
  Names packages;
};

const std::map<std::string, FolderRule>& Rules() {
  static const auto* rules = new std::map<std::string, FolderRule>{
      {"rewrite", {{"rewrite"}, {"absl"}}},
      {"codegen", {{"rewrite", "codegen"}, {"absl", "llvm"}}},
      {"runtime", {{"rewrite", "runtime"}, {"absl", "llvm", "tbb", "cuda"}}},
      {"optimizer",
       {{"rewrite", "codegen", "runtime", "optimizer"}, {"absl", "tbb", "nlohmann", "sqlite3"}}},
      {"tensor", {{"rewrite", "optimizer", "runtime", "tensor"}, {"absl"}}},
      {"onnx", {{"rewrite", "optimizer", "runtime", "tensor", "onnx"}, {"absl", "onnx", "google"}}},
      {"driver",
       {{"rewrite", "codegen", "optimizer", "runtime", "tensor", "onnx", "driver"},
        {"absl", "nlohmann", "CLI"}}},
  };
  return *rules;
}

const Names kPackages = {"absl", "llvm",  "clang",     "tbb",     "oneapi", "cuda", "nlohmann",
                         "CLI",  "gtest", "benchmark", "sqlite3", "google", "z3"};

struct SourceFile {
  fs::path path;  // relative to the source folder
  std::string folder;
  std::vector<std::string> lines;
  bool header() const { return path.extension() == ".h"; }
};

std::vector<SourceFile> ReadSources() {
  const fs::path root = QUERN_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const char* folder : {"rewrite", "codegen", "runtime", "optimizer", "tensor", "onnx",
                             "driver", "tests", "bench", "examples"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      SourceFile file;
      file.path = entry.path().lexically_relative(root);
      file.folder = folder;
      std::ifstream stream(entry.path());
      for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

const std::vector<SourceFile>& Sources() {
  static const auto* sources = new std::vector<SourceFile>(ReadSources());
  return *sources;
}

// The name in an #include line, "" in any other line.
std::string Included(const std::string& line) {
  if (line.rfind("#include", 0) != 0) return "";
  const size_t begin = line.find_first_of("<\"");
  const size_t end = line.find_last_of(">\"");
  if (begin == std::string::npos || end <= begin) return "";
  return line.substr(begin + 1, end - begin - 1);
}

std::string FirstPart(const std::string& name) {
  const std::string first = name.substr(0, name.find('/'));
  return first.substr(0, first.find('.'));  // <sqlite3.h>
}

bool IsTable(const SourceFile& file) {
  const std::string name = file.path.filename();
  return name.rfind("rules_", 0) == 0 || name.find("_coefficients") != std::string::npos;
}

TEST(IncludeRulesTest, TheSourcesAreFound) {
  std::map<std::string, int> count;
  for (const SourceFile& file : Sources()) ++count[file.folder];
  for (const char* folder : {"rewrite", "codegen", "runtime", "optimizer", "tensor", "driver"}) {
    EXPECT_GE(count[folder], 10) << folder;
  }
}

TEST(IncludeRulesTest, FoldersIncludeOnlyWhatTheyMay) {
  Names folders;
  for (const auto& [folder, rule] : Rules()) folders.insert(folder);
  folders.insert({"tests", "bench", "examples"});
  for (const SourceFile& file : Sources()) {
    const auto rule = Rules().find(file.folder);
    if (rule == Rules().end()) continue;  // Tests and benchmarks may include everything.
    for (const std::string& line : file.lines) {
      const std::string name = Included(line);
      const std::string first = FirstPart(name);
      if (name.find('/') != std::string::npos && folders.contains(first)) {
        EXPECT_TRUE(rule->second.folders.contains(first)) << file.path << ": " << line;
      } else if (kPackages.contains(first)) {
        EXPECT_TRUE(rule->second.packages.contains(first)) << file.path << ": " << line;
      }
    }
  }
}

// LLVM's headers take seconds to read; those of CUDA are not on every machine.
TEST(IncludeRulesTest, CompilersStayOutOfHeaders) {
  int sources_with_llvm = 0;
  int sources_with_cuda = 0;
  for (const SourceFile& file : Sources()) {
    Names packages;
    for (const std::string& line : file.lines) packages.insert(FirstPart(Included(line)));
    if (file.header()) {
      EXPECT_FALSE(packages.contains("llvm")) << file.path;
      EXPECT_FALSE(packages.contains("cuda")) << file.path;
    }
    if (packages.contains("llvm")) {
      ++sources_with_llvm;
      EXPECT_TRUE(file.folder == "codegen" || file.folder == "runtime") << file.path;
    }
    if (packages.contains("cuda")) ++sources_with_cuda;
  }
  EXPECT_GT(sources_with_llvm, 0);
  EXPECT_LE(sources_with_llvm, 13);
  EXPECT_LE(sources_with_cuda, 1);
}

TEST(IncludeRulesTest, FilesHoldOneIdea) {
  for (const SourceFile& file : Sources()) {
    if (IsTable(file)) continue;
    // A test is a list of cases, which is nearer to a table.
    const size_t limit = file.folder == "tests" ? 650 : 500;
    EXPECT_LE(file.lines.size(), limit) << file.path << " is too long; split it";
  }
}

TEST(IncludeRulesTest, NamesSayWhatIsInside) {
  for (const SourceFile& file : Sources()) {
    std::stringstream parts(file.path.string());
    for (std::string part; std::getline(parts, part, '/');) {
      std::stringstream words(part.substr(0, part.find('.')));
      for (std::string word; std::getline(words, word, '_');) {
        for (const char* forbidden : {"util", "utils", "helper", "helpers", "common", "misc"}) {
          EXPECT_NE(word, forbidden) << file.path;
        }
      }
    }
  }
}

// A header that is installed says what its contents are for.
TEST(IncludeRulesTest, PublicHeadersAreDocumented) {
  int headers = 0;
  for (const SourceFile& file : Sources()) {
    if (!file.header() || !Rules().contains(file.folder)) continue;
    ++headers;
    EXPECT_TRUE(
        std::any_of(file.lines.begin(), file.lines.end(),
                    [](const std::string& line) { return line.find("///") != std::string::npos; }))
        << file.path << " has no /// comment";
  }
  EXPECT_GT(headers, 50);
}

TEST(IncludeRulesTest, GuardsAreNamedAfterTheFile) {
  for (const SourceFile& file : Sources()) {
    if (!file.header()) continue;
    std::string guard = "QUERN_" + file.path.string() + "_";
    for (char& c : guard) c = std::isalnum(static_cast<unsigned char>(c)) ? std::toupper(c) : '_';
    const auto first = std::find_if(file.lines.begin(), file.lines.end(),
                                    [](const std::string& line) { return line[0] == '#'; });
    ASSERT_GE(file.lines.end() - first, 3) << file.path;
    EXPECT_EQ(first[0], "#ifndef " + guard) << file.path;
    EXPECT_EQ(first[1], "#define " + guard) << file.path;
  }
}

TEST(IncludeRulesTest, FoldersHaveAReadme) {
  for (const auto& [folder, rule] : Rules()) {
    const fs::path path = fs::path(QUERN_SOURCE_DIR) / folder;
    if (!fs::exists(path / "CMakeLists.txt")) continue;
    EXPECT_TRUE(fs::exists(path / "README.md")) << folder;
  }
}

}  // namespace
}  // namespace quern
