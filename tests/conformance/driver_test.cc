// Runs the built `quern` program as its users do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "driver/npy.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
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
  EXPECT_THAT(
      bad.err,
      HasSubstr("there is no such pass; there are: kernel merged-loops heuristic schedule"));
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

template <typename T>
void WriteArray(const fs::path& path, DType dtype, const std::vector<int64_t>& shape,
                const std::vector<T>& values, NpyOrder order = NpyOrder::kC) {
  EXPECT_TRUE(WriteNpy(path, dtype, shape, std::as_bytes(std::span(values)), order).ok());
}

template <typename T>
std::vector<T> ReadArray(const fs::path& path) {
  const absl::StatusOr<NpyArray> a = ReadNpy(path);
  EXPECT_TRUE(a.ok()) << a.status();
  std::vector<T> values(a.ok() ? a->data.size() / sizeof(T) : 0);
  if (a.ok()) std::memcpy(values.data(), a->data.data(), a->data.size());
  return values;
}

TEST_F(DriverTest, RunReadsAndWritesArrays) {
  WriteArray<float>(Path("a.npy"), kF32Type, {2, 3}, {1, 2, 3, 4, 5, 6}, NpyOrder::kFortran);
  WriteArray<float>(Path("b.npy"), kF32Type, {3, 2}, {1, 0, 0, 1, 1, 1});
  const Outcome o =
      Quern({"run", kProduct, "-i", "A=" + Path("a.npy").string(), "-i",
             "B=" + Path("b.npy").string(), "-o", "C=" + Path("c.npy").string(), "--check"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(ReadArray<float>(Path("c.npy")), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(o.out, HasSubstr("check       ok"));
  // Both types of one formula come from files here; a type that differs is an error.
  const Outcome bad = Quern(
      {"run", kProduct, "-i", "A=" + Path("a.npy").string(), "--dtype", "A=f64", "--size", "j=2"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("holds f32, but --dtype says that A is f64"));
  EXPECT_THAT(Quern({"run", kProduct, "--size", "i=2,j=2,k=2", "-o", "A=x.npy"}).err,
              HasSubstr("output A: no statement"));
  EXPECT_THAT(
      Quern({"run", kProduct, "--size", "i=3,j=2,k=2", "-i", "C=" + Path("b.npy").string()}).err,
      HasSubstr("-i C: no such input"));
}

TEST_F(DriverTest, RunReportsWhatTheManualSays) {
  const Outcome o = Quern({"run", kProduct, "--size", "i=48,j=64,k=32", "--check", "--json", "-"},
                          {"BEAM=2", "QUERN_BEAM_SECONDS=2"});
  ASSERT_EQ(o.code, 0) << o.err;
  const json r = o.Json();
  ASSERT_TRUE(r.is_object()) << o.out;
  EXPECT_TRUE(r["actions"].is_string());
  for (const char* name :
       {"seconds_median", "seconds_spread", "gflops", "peak_fraction", "bandwidth_fraction",
        "speedup_vs_heuristic", "speedup_vs_noopt", "compile_ms"}) {
    EXPECT_TRUE(r[name].is_number()) << name;
  }
  EXPECT_FALSE(r["cached"].get<bool>());
  EXPECT_GT(r["search"]["candidates"].get<int>(), 0);
  EXPECT_GT(r["search"]["seconds"].get<double>(), 0);
  EXPECT_TRUE(r["search"]["failed"].is_number_integer());
  EXPECT_TRUE(r["check"]["ok"].get<bool>());
  EXPECT_TRUE(r["check"]["max_abs_error"].is_number());
  EXPECT_TRUE(r["check"]["max_rel_error"].is_number());

  // The second time nothing is searched or compiled, also in another process.
  const json again = Quern({"run", kProduct, "--size", "i=48,j=64,k=32", "--json", "-"},
                           {"BEAM=2", "QUERN_BEAM_SECONDS=2"})
                         .Json();
  EXPECT_TRUE(again["cached"].get<bool>());
  EXPECT_EQ(again["search"]["candidates"], 0);
  EXPECT_EQ(again["compile_ms"], 0);
  EXPECT_EQ(again["actions"], r["actions"]);
  EXPECT_TRUE(again["check"].is_null());
  // Another width is another search.
  EXPECT_FALSE(Quern({"run", kProduct, "--size", "i=48,j=64,k=32", "--json", "-"},
                     {"BEAM=3", "QUERN_BEAM_SECONDS=1"})
                   .Json()["cached"]
                   .get<bool>());
}

TEST_F(DriverTest, NoOptWinsOverBeamAndSaysSo) {
  const Outcome o =
      Quern({"run", kProduct, "--size", "i=8,j=8,k=8", "--json", "-"}, {"NOOPT=1", "BEAM=8"});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("NOOPT=1 wins over BEAM=8"));
  EXPECT_EQ(o.Json()["strategy"], "noopt");
  EXPECT_EQ(o.Json()["actions"], "");
  EXPECT_EQ(Quern({"run", kProduct, "--size", "i=8,j=8,k=8", "--json", "-"}, {"NOOPT=0"})
                .Json()["strategy"],
            "heuristic");
}

TEST_F(DriverTest, ExplicitActions) {
  const std::vector<std::string> base = {"run",     kProduct,       "--size", "i=32,j=32,k=32",
                                         "--check", "--no-compare", "--json", "-",
                                         "--apply"};
  const auto apply = [&](const std::string& actions) {
    std::vector<std::string> arguments = base;
    arguments.push_back(actions);
    return Quern(arguments);
  };
  const Outcome o = apply("UPCAST(1,32) UPCAST(0,8) LOCAL(0,0)");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.Json()["actions"], "UPCAST(1,32) UPCAST(0,8) LOCAL(0,0)");
  EXPECT_TRUE(o.Json()["speedup_vs_noopt"].is_null());
  for (const char* bad : {"UPCAST(9,2)", "UPCAST(0,3)", "UPCAST(0,-1)", "UNROLL(5,2)", "SWAP(0,0)",
                          "THREAD(0,2) THREAD(0,2)", "PADTO(0,1024)", "UPCAST(0,32) UPCAST(2,2)",
                          "NONSENSE(1,2)", "UPCAST(0"}) {
    const Outcome refused = apply(bad);
    EXPECT_NE(refused.code, 0) << bad;
    EXPECT_LT(refused.code, 128) << bad;
    EXPECT_FALSE(refused.err.empty()) << bad;
  }
}

TEST_F(DriverTest, ProgramsOfSeveralStatements) {
  const Outcome softmax = Quern(
      {"run", "m[i] = max[j](X[i,j]); e[i,j] = exp(X[i,j]-m[i]); Y[i,j] = e[i,j]/sum[k](e[i,k])",
       "--size", "i=20,j=33", "--check", "--json", "-"});
  EXPECT_EQ(softmax.code, 0) << softmax.err;
  EXPECT_TRUE(softmax.Json()["check"]["ok"].get<bool>());
  const Outcome attention =
      Quern({"run",
             "S[i,j] = sum[d](Q[i,d]*K[j,d])/8; P[i,j] = exp(S[i,j]-max[l](S[i,l])); "
             "O[i,d] = sum[j](P[i,j]*V[j,d])/sum[l](P[i,l])",
             "--size", "i=17,j=24,d=64", "--check", "--json", "-"});
  EXPECT_EQ(attention.code, 0) << attention.err;
  EXPECT_TRUE(attention.Json()["check"]["ok"].get<bool>());
  EXPECT_GT(attention.Json()["kernels"].size(), 1u);
}

TEST_F(DriverTest, AttentionOfManyRowsIsOneKernel) {
  std::vector<std::string> arguments = {
      "run",
      "S[i,j] = sum[d](Q[i,d]*K[j,d])/4; P[i,j] = exp(S[i,j]-max[l](S[i,l])); "
      "O[i,d] = sum[j](P[i,j]*V[j,d])/sum[l](P[i,l])",
      "--size",
      "i=512,j=640,d=16",
      "--check",
      "--json",
      "-"};
  const Outcome one = Quern(arguments);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(one.Json()["check"]["ok"].get<bool>());
  EXPECT_EQ(one.Json()["kernels"].size(), 1u);
  arguments.push_back("--no-groups");
  const Outcome several = Quern(arguments);
  EXPECT_EQ(several.code, 0) << several.err;
  EXPECT_TRUE(several.Json()["check"]["ok"].get<bool>());
  EXPECT_EQ(several.Json()["kernels"].size(), 3u);
}

TEST_F(DriverTest, InPlaceUnderASearchIsExact) {
  WriteArray<float>(Path("b.npy"), kF32Type, {1000}, std::vector<float>(1000, 1.0f));
  const Outcome o = Quern({"run", "b[i] = b[i]*0.5", "-i", "b=" + Path("b.npy").string(), "-o",
                           "b=" + Path("out.npy").string(), "--check"},
                          {"BEAM=2", "QUERN_BEAM_SECONDS=2"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(ReadArray<float>(Path("out.npy")), std::vector<float>(1000, 0.5f));
}

TEST_F(DriverTest, EmptyAxesAndScalars) {
  const Outcome sum = Quern(
      {"run", kProduct, "--size", "i=3,j=2,k=0", "-o", "C=" + Path("c.npy").string(), "--check"});
  EXPECT_EQ(sum.code, 0) << sum.err;
  EXPECT_EQ(ReadArray<float>(Path("c.npy")), std::vector<float>(6, 0.0f));
  const Outcome none = Quern({"run", kProduct, "--size", "i=0,j=2,k=3", "--check", "--json", "-"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(none.Json()["check"]["ok"].get<bool>());
  const Outcome scalar =
      Quern({"run", "s[] = 3*t[] + sum[i](x[i])", "--size", "i=1", "--check", "--json", "-"});
  EXPECT_EQ(scalar.code, 0) << scalar.err;
  EXPECT_TRUE(scalar.Json()["check"]["ok"].get<bool>());
}

TEST_F(DriverTest, EveryTypeRuns) {
  for (const char* type :
       {"f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    const std::string types = std::string("A=") + type + ",B=" + type;
    const Outcome o = Quern({"run", kProduct, "--size", "i=16,j=32,k=24", "--dtype", types,
                             "--check", "--no-compare", "--json", "-"});
    EXPECT_EQ(o.code, 0) << type << o.err;
  }
  const Outcome flags = Quern({"run", "y[i] = a[i] & !b[i]; n[] = sum[i](a[i])", "--size", "i=100",
                               "--dtype", "a=bool,b=bool", "--check", "--no-compare"});
  EXPECT_EQ(flags.code, 0) << flags.err;
}

TEST_F(DriverTest, ABrokenCacheNeverBreaksARun) {
  const std::vector<std::string> run = {"run",     kProduct,       "--size", "i=16,j=16,k=16",
                                        "--check", "--no-compare", "--json", "-"};
  const std::vector<std::string> beam = {"BEAM=2", "QUERN_BEAM_SECONDS=1"};
  ASSERT_EQ(Quern(run, beam).code, 0);
  std::string path = Quern({"cache", "path"}).out;
  path.pop_back();
  fs::resize_file(path, fs::file_size(path) / 2);
  const Outcome cut = Quern(run, beam);
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_TRUE(cut.Json()["check"]["ok"].get<bool>());
  EXPECT_TRUE(Quern(run, beam).Json()["cached"].get<bool>());

  // An entry whose actions have been cut.
  Quern({"cache", "export", Path("entries")});
  std::string entries = ReadFile(Path("entries"));
  json entry = json::parse(entries);
  entry["actions"] = "UPCAST(1,";
  entry["seconds"] = 0;  // Faster than what is there.
  std::ofstream(Path("entries")) << entry.dump() << "\n";
  Quern({"cache", "import", Path("entries")});
  const Outcome odd = Quern(run, beam);
  EXPECT_EQ(odd.code, 0) << odd.err;
  EXPECT_THAT(odd.err, HasSubstr("does not apply any more"));
  EXPECT_TRUE(odd.Json()["check"]["ok"].get<bool>());

  std::ofstream(Path("file")) << "x";
  std::vector<std::string> nowhere = beam;
  nowhere.push_back("QUERN_CACHE_DIR=" + Path("file/x").string());
  const Outcome none = Quern(run, nowhere);
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.err, HasSubstr("results are not cached"));
  EXPECT_FALSE(none.Json()["cached"].get<bool>());
}

TEST_F(DriverTest, TheSameSeedGivesTheSameNumbers) {
  const auto run = [&](const std::string& seed) {
    const Outcome o = Quern({"run", "y[i] = x[i]", "--size", "i=50", "--seed", seed, "--no-compare",
                             "-o", "y=" + Path("y.npy").string()});
    EXPECT_EQ(o.code, 0) << o.err;
    return ReadArray<float>(Path("y.npy"));
  };
  const std::vector<float> one = run("1");
  EXPECT_EQ(run("1"), one);
  EXPECT_NE(run("2"), one);
}

TEST_F(DriverTest, BenchListsAndFilters) {
  EXPECT_THAT(Quern({"bench", "--list"}).out, HasSubstr("softmax-1024"));
  EXPECT_EQ(Quern({"bench", "no-such-name"}).code, 2);
}

}  // namespace
}  // namespace quern
