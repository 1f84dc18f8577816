// Runs the built `quern` program as its users do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "driver/npy.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  json Json() const { return json::parse(out, nullptr, false); }
};

class DriverTest : public ::testing::Test {
 protected:
  DriverTest() {
    folder_ = fs::path(::testing::TempDir()) /
              ("quern_driver_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DriverTest() override { fs::remove_all(folder_); }

  fs::path Path(const std::string& name) const { return folder_ / name; }

  // Runs `quern` with arguments and NAME=value settings, in a cache of this test's own.
  Outcome Quern(const std::vector<std::string>& arguments,
                const std::vector<std::string>& settings = {}) {
    const pid_t child = fork();
    if (child == 0) {
      for (const char* name : {"BEAM", "NOOPT", "QUERN_BEAM_SECONDS", "QUERN_CACHE"}) {
        unsetenv(name);
      }
      setenv("QUERN_CACHE_DIR", Path("cache").c_str(), 1);
      for (const std::string& s : settings) putenv(strdup(s.c_str()));
      if (freopen(Path("out").c_str(), "w", stdout) == nullptr) _exit(126);
      if (freopen(Path("err").c_str(), "w", stderr) == nullptr) _exit(126);
      const std::string program = std::string(QUERN_BINARY_DIR) + "/bin/quern";
      std::vector<char*> argv = {const_cast<char*>(program.c_str())};
      for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = ReadFile(Path("out"));
    outcome.err = ReadFile(Path("err"));
    return outcome;
  }

  fs::path folder_;
};

const std::string kProduct = "C[i,j] = sum[k](A[i,k]*B[k,j])";

TEST_F(DriverTest, HelpAndMistakes) {
  EXPECT_EQ(Quern({"--help"}).code, 0);
  EXPECT_THAT(Quern({"--help"}).out, HasSubstr("explain"));
  EXPECT_EQ(Quern({"--version"}).code, 0);
  const Outcome nothing = Quern({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.out, IsEmpty());
  const Outcome unknown = Quern({"frobnicate"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no command `frobnicate`"));
  EXPECT_EQ(Quern({"explain"}).code, 2);
}

TEST_F(DriverTest, ErrorsShowThePlaceInTheFormula) {
  const Outcome o = Quern({"explain", "C[i,j] = A[i,k]", "--size", "i=3,j=3,k=3"});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("1:14: k is neither an index of C nor reduced over here\n"
                               "  C[i,j] = A[i,k]\n"
                               "               ^\n"));
  EXPECT_THAT(Quern({"explain", kProduct, "--size", "i=x"}).err, HasSubstr("\"x\" must be"));
  EXPECT_THAT(Quern({"explain", kProduct, "--dtype", "A=float"}).err, HasSubstr("must be one of"));
  EXPECT_THAT(Quern({"explain", kProduct, "-i", "A=/no/such.npy"}).err,
              HasSubstr("/no/such.npy: No such file"));
  EXPECT_THAT(Quern({"explain", kProduct, "-i", "A"}).err, HasSubstr("NAME=file.npy"));
}

TEST_F(DriverTest, BadEnvironmentIsAClearError) {
  for (const char* bad : {"", "abc", "1.5", "-1", " 2"}) {
    const Outcome o =
        Quern({"explain", kProduct, "--size", "i=4,j=4,k=4"}, {std::string("BEAM=") + bad});
    EXPECT_EQ(o.code, 2);
    EXPECT_THAT(o.err, HasSubstr(std::string("environment variable BEAM=\"") + bad +
                                 "\": must be an integer from 0 to 1000"));
  }
}

TEST_F(DriverTest, ExplainShowsEveryStage) {
  const std::vector<std::string> base = {"explain", kProduct, "--size", "i=64,j=64,k=64"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Quern(more);
  };
  const Outcome all = with({"--apply", "UPCAST(1,32) UPCAST(0,4)", "--rules", "--llvm", "--asm"});
  EXPECT_EQ(all.code, 0) << all.err;
  for (const char* part : {"kernel: as it is written", "schedule: UPCAST(1,32) UPCAST(0,4)",
                           "linearize", "rules that fired", "define", "assembly"}) {
    EXPECT_THAT(all.out, HasSubstr(part));
  }
  const Outcome one = with({"--pass", "schedule", "--apply", ""});
  EXPECT_THAT(one.out, HasSubstr("for i0 in 64"));
  EXPECT_THAT(one.out, Not(HasSubstr("linearize")));
  const Outcome bad = with({"--pass", "nonsense"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("there is no such pass; there are: kernel heuristic schedule"));
  EXPECT_THAT(with({"--pass", "heuristic"}).out, HasSubstr("heuristic: steps of the default"));
  EXPECT_THAT(with({"--actions", "--pass", "schedule"}).out, HasSubstr("UPCAST(0,"));
  const Outcome refused = with({"--apply", "UPCAST(9,2)"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("UPCAST(9,2)"));
  const json report = with({"--json", "-"}).Json();
  ASSERT_TRUE(report.is_object());
  EXPECT_GT(report["kernels"][0]["steps"].size(), 5u);
}

TEST_F(DriverTest, ExplainReadsItsOwnTextForm) {
  const json report =
      Quern({"explain", kProduct, "--size", "i=6,j=5,k=4", "--uop", "--json", "-"}).Json();
  std::ofstream(Path("k.uop")) << report["kernels"][0]["steps"][0]["text"].get<std::string>();
  const Outcome again = Quern({"explain", Path("k.uop"), "--uop", "--json", "-"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.Json()["kernels"][0]["steps"][0]["text"],
            report["kernels"][0]["steps"][0]["text"]);
  std::ofstream(Path("bad.uop")) << "%0 = nonsense\n";
  EXPECT_THAT(Quern({"explain", Path("bad.uop")}).err, HasSubstr("bad.uop:"));
}

TEST_F(DriverTest, Rules) {
  const json report = Quern({"rules", "--json", "-"}).Json();
  ASSERT_TRUE(report.is_object());
  EXPECT_GT(report["rules"].size(), 50u);
  for (const json& r : report["rules"]) EXPECT_FALSE(r["status"].get<std::string>().empty());
  EXPECT_THAT(Quern({"rules"}).out, HasSubstr("→"));
  EXPECT_LT(Quern({"rules", "division", "--json", "-"}).Json()["rules"].size(),
            report["rules"].size());
}

TEST_F(DriverTest, Devices) {
  const json report = Quern({"devices", "--json", "-"}).Json();
  EXPECT_GE(report["devices"][0]["cores"].get<int>(), 1);
  EXPECT_THAT(Quern({"devices"}).out, HasSubstr("cores"));
}

TEST_F(DriverTest, CacheCommands) {
  const std::string path = Quern({"cache", "path"}).out;
  EXPECT_THAT(path, HasSubstr(Path("cache").string()));
  EXPECT_THAT(Quern({"cache", "list"}).out, HasSubstr("0 tuned kernels"));
  const std::string entry =
      R"json({"ast":"0123456789abcdef0123456789abcdef","device":"d","strategy":"beam width=8",)json"
      R"json("llvm_version":"22","schema":1,"actions":"UPCAST(0,4)","seconds":0.5})json";
  std::ofstream(Path("entries")) << entry << "\n";
  const Outcome imported = Quern({"cache", "import", Path("entries")});
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("1 entries read, 1 of them"));
  EXPECT_THAT(Quern({"cache", "list"}).out, HasSubstr("UPCAST(0,4)"));
  EXPECT_EQ(Quern({"cache", "list", "--json", "-"}).Json()["entries"].size(), 1u);
  EXPECT_EQ(Quern({"cache", "export", Path("exported")}).code, 0);
  EXPECT_THAT(ReadFile(Path("exported")), HasSubstr("0123456789abcdef"));
  EXPECT_EQ(Quern({"cache", "clear"}).code, 0);
  EXPECT_THAT(Quern({"cache", "list"}).out, HasSubstr("0 tuned kernels"));
  EXPECT_EQ(Quern({"cache", "import", Path("exported")}).code, 0);
  std::ofstream(Path("bad")) << entry << "\nnonsense\n";
  const Outcome bad = Quern({"cache", "import", Path("bad")});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("line 2"));
  std::ofstream(Path("file")) << "x";
  const Outcome none = Quern({"cache", "list"}, {"QUERN_CACHE_DIR=" + Path("file/x").string()});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("not cached"));
}

}  // namespace
}  // namespace quern
