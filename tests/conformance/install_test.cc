// Installs the build, moves it elsewhere, and builds and runs the example against it as a user
// would. Needs everything to be built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quern {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What this build was configured with; "" if it was not.
std::string CacheVariable(const std::string& name) {
  std::ifstream cache(fs::path(QUERN_BINARY_DIR) / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(line.find('=') + 1);
  }
  return "";
}

class InstallTest : public ::testing::Test {
 protected:
  InstallTest()
      : folder_(fs::path(::testing::TempDir()) / ("quern_install_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // Nothing but the installed package shall be found.
    for (const char* name : {"QUERN_WORKER", "BEAM", "NOOPT"}) unsetenv(name);
    setenv("QUERN_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  }
  ~InstallTest() override { fs::remove_all(folder_); }

  // Runs a shell command; its output, with the exit status at the end if that is not 0.
  std::string Shell(const std::string& command) {
    const fs::path out = folder_ / "out";
    const int status = std::system((command + " > '" + out.string() + "' 2>&1").c_str());
    std::string text = ReadFile(out);
    if (status != 0) text += "\n[FAILED with " + std::to_string(status) + "] " + command + "\n";
    return text;
  }
  std::string Quoted(const fs::path& path) const { return "'" + path.string() + "'"; }

  fs::path folder_;
};

TEST_F(InstallTest, TheExampleRunsAgainstTheInstalledPackage) {
  const std::string cmake = Quoted(CacheVariable("CMAKE_COMMAND"));
  const fs::path installed = folder_ / "installed";
  const fs::path prefix = folder_ / "moved";
  ASSERT_THAT(Shell(cmake + " --install " QUERN_BINARY_DIR " --prefix " + Quoted(installed)),
              Not(HasSubstr("FAILED")));
  fs::rename(installed, prefix);  // Packages may be unpacked anywhere.
  EXPECT_TRUE(fs::exists(prefix / "include/quern/tensor/prepare.h"));
  EXPECT_TRUE(fs::exists(prefix / "include/quern/optimizer/configuration.h"));

  std::string configure = cmake + " -S " QUERN_SOURCE_DIR "/examples -B " +
                          Quoted(folder_ / "build") + " -DCMAKE_PREFIX_PATH=" + Quoted(prefix) +
                          " -DCMAKE_CXX_COMPILER=" + Quoted(CacheVariable("CMAKE_CXX_COMPILER"));
  if (const std::string sanitize = CacheVariable("QUERN_SANITIZE"); !sanitize.empty()) {
    configure += " -DCMAKE_CXX_FLAGS=-fsanitize=" + sanitize;
  }
  ASSERT_THAT(Shell(configure), Not(HasSubstr("FAILED")));
  ASSERT_THAT(Shell(cmake + " --build " + Quoted(folder_ / "build")), Not(HasSubstr("FAILED")));

  const std::string example = Quoted(folder_ / "build/tune_matmul");
  const std::string first = Shell(example);
  EXPECT_THAT(first, Not(HasSubstr("FAILED")));
  EXPECT_THAT(first, HasSubstr("measured "));  // It has found the worker.
  EXPECT_THAT(first, HasSubstr("C[0,0] = 128"));
  const std::string second = Shell(example);
  EXPECT_THAT(second, Not(HasSubstr("FAILED")));
  EXPECT_THAT(second, HasSubstr("from the cache"));
}

TEST_F(InstallTest, TheProgramFindsItsWorker) {
  const std::string cmake = Quoted(CacheVariable("CMAKE_COMMAND"));
  const fs::path prefix = folder_ / "installed";
  ASSERT_THAT(Shell(cmake + " --install " QUERN_BINARY_DIR " --prefix " + Quoted(prefix)),
              Not(HasSubstr("FAILED")));
  const std::string run =
      Shell("BEAM=1 QUERN_BEAM_SECONDS=2 " + Quoted(prefix / "bin/quern") +
            " run 'C[i,j] = sum[k](A[i,k]*B[k,j])' --size i=32,j=32,k=32 --json -");
  EXPECT_THAT(run, Not(HasSubstr("FAILED")));
  EXPECT_THAT(run, HasSubstr("\"search\""));
  EXPECT_THAT(run, Not(HasSubstr("the search failed")));
}

}  // namespace
}  // namespace quern
