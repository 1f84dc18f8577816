#include "optimizer/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace quern {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() {
    folder_ = fs::path(::testing::TempDir()) /
              ("quern_database_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  ~DatabaseTest() override { fs::remove_all(folder_); }

  std::unique_ptr<TuningDatabase> Open() { return OpenAt(folder_); }
  std::unique_ptr<TuningDatabase> OpenAt(const fs::path& folder) {
    DatabaseOptions options;
    options.folder = folder;
    options.warn = [this](std::string_view w) { warnings_.emplace_back(w); };
    return TuningDatabase::Open(std::move(options));
  }

  fs::path folder_;
  std::vector<std::string> warnings_;
};

TuningKey Key(uint64_t n = 1) { return {{n, n * 3}, "cpu, 2 threads", "beam width=8", "22.1"}; }
TuningEntry Entry(double seconds = 0.5) { return {"UPCAST(1,32)", seconds, R"({"candidates":7})"}; }
std::vector<std::byte> Code(size_t size, int seed = 1) {
  std::vector<std::byte> code(size);
  for (size_t i = 0; i < size; ++i) code[i] = std::byte(i * 7 + static_cast<size_t>(seed));
  return code;
}

TEST_F(DatabaseTest, KeepsWhatIsStored) {
  EXPECT_FALSE(Open()->Find(Key()));
  Open()->Store(Key(), Entry());
  EXPECT_EQ(Open()->Find(Key()), Entry());
  Open()->Store(Key(), Entry(0.25));  // A later search replaces the entry, faster or not.
  Open()->Store(Key(), Entry(0.75));
  EXPECT_EQ(Open()->Find(Key()), Entry(0.75));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(DatabaseTest, EveryFieldOfTheKeyCounts) {
  const auto db = Open();
  db->Store(Key(), Entry());
  std::vector<TuningKey> others(6, Key());
  others[0].ast.high ^= 1;
  others[1].ast.low ^= uint64_t{1} << 63;
  others[2].device = "cpu, 4 threads";
  others[3].strategy = "beam width=9";
  others[4].llvm_version = "22.2";
  others[5].schema += 1;
  for (const TuningKey& other : others) EXPECT_FALSE(db->Find(other));
  EXPECT_TRUE(db->Find(Key()));

  const ObjectKey key = {{1, 2}, "cpu", "22.1", "fast"};
  db->StoreObject(key, Code(1000));
  std::vector<ObjectKey> object_keys(4, key);
  object_keys[0].ast.low = 3;
  object_keys[1].device = "cpu +avx512f";
  object_keys[2].compiler = "22.2";
  object_keys[3].flags = "";
  for (const ObjectKey& other : object_keys) EXPECT_FALSE(db->FindObject(other));
  EXPECT_EQ(db->FindObject(key), Code(1000));
}

TEST_F(DatabaseTest, ObjectCodeOfAnySize) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{100000}, size_t{3} << 20}) {
    const ObjectKey key = {{size, 2}, "cpu", "22.1", ""};
    Open()->StoreObject(key, Code(size));
    EXPECT_EQ(Open()->FindObject(key), Code(size));
  }
  EXPECT_EQ(Open()->Objects()->count, 4);
}

TEST_F(DatabaseTest, OldObjectCodeIsDropped) {
  {
    const auto db = Open();
    for (uint64_t i = 0; i < 10; ++i) db->StoreObject({{i, 0}, "", "", ""}, Code(1000));
  }
  DatabaseOptions options;
  options.folder = folder_;
  options.max_object_bytes = 8000;
  const auto db = TuningDatabase::Open(options);
  EXPECT_EQ(db->Objects()->count, 4);
  EXPECT_FALSE(db->FindObject({{0, 0}, "", "", ""}));
  EXPECT_TRUE(db->FindObject({{9, 0}, "", "", ""}));
}

TEST_F(DatabaseTest, ListExportImportClear) {
  {
    const auto db = Open();
    for (uint64_t i = 1; i <= 3; ++i) db->Store(Key(i), Entry());
  }
  const auto db = Open();
  const auto records = db->List();
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 3u);
  const std::string text = ExportRecords(*records);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);

  ASSERT_TRUE(db->Clear().ok());
  EXPECT_FALSE(db->Find(Key(1)));
  db->Store(Key(1), Entry(0.1));  // Faster than what is imported.
  db->Store(Key(2), Entry(9));    // Slower.
  const auto imported = ImportRecords(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto added = db->Add(*imported);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(*added, 2);
  EXPECT_EQ(db->Find(Key(1)), Entry(0.1));
  EXPECT_EQ(db->Find(Key(2)), Entry());
  EXPECT_EQ(db->Find(Key(3)), Entry());
}

TEST_F(DatabaseTest, BadImportsNameTheLine) {
  const TuningRecord r = {Key(), Entry(), 5};
  const std::string good = ExportRecords(std::vector<TuningRecord>{r});
  EXPECT_EQ(ImportRecords(good)->at(0).key, Key());
  EXPECT_TRUE(ImportRecords("\n  \n")->empty());
  for (const std::string& bad :
       {std::string("nonsense"), std::string("[]"), std::string("{}"),
        good.substr(0, good.size() / 2),
        std::string(R"({"ast":"zz","device":"","strategy":"","llvm_version":"","schema":1,)") +
            R"("actions":"","seconds":1})"}) {
    const auto records = ImportRecords(good + "\n" + bad);
    ASSERT_FALSE(records.ok()) << bad;
    EXPECT_THAT(std::string(records.status().message()), HasSubstr("line 3"));
  }
}

TEST_F(DatabaseTest, ADamagedFileIsSetAside) {
  std::string path;
  {
    const auto db = Open();
    path = db->path();
    for (uint64_t i = 0; i < 300; ++i) db->Store(Key(i), Entry());
    db->StoreObject({{1, 1}, "", "", ""}, Code(100000));
  }
  const auto size = fs::file_size(path);
  std::string whole(size, '\0');
  std::ifstream(path, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(size));
  int replaced = 0;
  for (const size_t cut : {size / 2, size / 4, size_t{4096}, size_t{100}, size_t{10}, size_t{0}}) {
    for (const char* suffix : {"", "-wal", "-shm", ".damaged"}) fs::remove(path + suffix);
    std::ofstream(path, std::ios::binary).write(whole.data(), static_cast<std::streamsize>(cut));
    warnings_.clear();
    const auto db = Open();
    // Looking up everything meets the damage, wherever it is.
    for (uint64_t i = 0; i < 300; ++i) db->Find(Key(i));
    (void)db->FindObject({{1, 1}, "", "", ""});
    db->Store(Key(1000), Entry());
    EXPECT_EQ(db->Find(Key(1000)), Entry()) << cut;
    EXPECT_EQ(Open()->Find(Key(1000)), Entry()) << cut;
    if (!warnings_.empty()) {
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is damaged; it is kept as"))) << cut;
      EXPECT_TRUE(fs::exists(path + ".damaged")) << cut;
      ++replaced;
    }
  }
  EXPECT_GE(replaced, 4);
  // Noise instead of a database.
  std::ofstream(path, std::ios::binary) << std::string(5000, 'x');
  EXPECT_TRUE(Open()->enabled());
}

TEST_F(DatabaseTest, AChangedByteInObjectCodeIsAMiss) {
  const ObjectKey key = {{1, 1}, "", "", ""};
  std::string path;
  {
    const auto db = Open();
    path = db->path();
    db->StoreObject(key, std::vector<std::byte>(50000, std::byte{0x42}));
  }
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  std::string whole((std::istreambuf_iterator<char>(file)), {});
  file.clear();
  file.seekp(static_cast<std::streamoff>(whole.find(std::string(100, '\x42')) + 50));
  file.put('!');
  file.close();
  EXPECT_FALSE(Open()->FindObject(key));
}

TEST_F(DatabaseTest, AFolderThatCannotBeMadeMeansNoCaching) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  const auto db = OpenAt(folder_ / "file" / "below");
  EXPECT_FALSE(db->enabled());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("results are not cached")));
  db->Store(Key(), Entry());
  EXPECT_FALSE(db->Find(Key()));
  db->StoreObject({}, Code(10));
  EXPECT_FALSE(db->FindObject({}));
  EXPECT_FALSE(db->List().ok());
  EXPECT_FALSE(db->Clear().ok());
  EXPECT_EQ(warnings_.size(), 1u);  // Said once.
}

TEST_F(DatabaseTest, AReadOnlyFolderDoesNoHarm) {
  Open()->Store(Key(), Entry());
  for (const auto& f : fs::directory_iterator(folder_)) {
    fs::permissions(f.path(), fs::perms::owner_read | fs::perms::others_read);
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                               fs::perms::others_exec);
  const pid_t child = fork();
  if (child == 0) {
    // Root may write everywhere, so this is tried as nobody.
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    const auto db = Open();
    db->Store(Key(2), Entry());
    const std::optional<TuningEntry> found = db->Find(Key());
    _exit(!db->Find(Key(2)) && (!found || *found == Entry()) && warnings_.size() == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(DatabaseTest, NoFolderAtAll) {
  const auto db = OpenAt("");
  EXPECT_FALSE(db->enabled());
  EXPECT_FALSE(db->Find(Key()));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(DatabaseTest, ManyThreadsShareOneConnection) {
  const auto db = Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const ObjectKey key = {{static_cast<uint64_t>(t), static_cast<uint64_t>(i)}, "", "", ""};
        db->StoreObject(key, Code(500, t));
        EXPECT_EQ(db->FindObject(key), Code(500, t));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(db->Objects()->count, 400);
}

// Eight processes that begin with no file at all, each writing and reading keys of its own and keys
// that all share.
TEST_F(DatabaseTest, EightProcessesAtOnce) {
  std::vector<pid_t> children;
  for (uint64_t p = 0; p < 8; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DatabaseOptions options;
      options.folder = folder_;
      int warned = 0;
      options.warn = [&](std::string_view w) {
        ++warned;
        fprintf(stderr, "%s\n", std::string(w).c_str());
      };
      bool good = true;
      for (uint64_t round = 0; round < 5; ++round) {
        const auto db = TuningDatabase::Open(options);
        for (uint64_t i = 0; i < 20; ++i) {
          const uint64_t own = 1000 * (p + 1) + round * 20 + i;
          db->Store(Key(own), Entry(static_cast<double>(own)));
          db->Store(Key(i), Entry(1));
          db->StoreObject({{own, 0}, "", "", ""}, Code(2000, static_cast<int>(p)));
          good = good && db->Find(Key(own)) == Entry(static_cast<double>(own)) &&
                 db->Find(Key(i)) == Entry(1);
        }
      }
      _exit(good && warned == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const auto db = Open();
  EXPECT_EQ(db->List()->size(), 8u * 100 + 20);
  EXPECT_EQ(db->Objects()->count, 800);
  EXPECT_THAT(warnings_, IsEmpty());
}

// All find the same damage at the same time; the file that the first begins must survive the
// others.
TEST_F(DatabaseTest, EightProcessesMeetADamagedFile) {
  std::string path;
  {
    const auto db = Open();
    path = db->path();
    for (uint64_t i = 0; i < 100; ++i) db->Store(Key(i), Entry());
  }
  fs::resize_file(path, fs::file_size(path) / 2);
  std::vector<pid_t> children;
  for (uint64_t p = 0; p < 8; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      DatabaseOptions options;
      options.folder = folder_;
      options.warn = [](std::string_view) {};
      const auto db = TuningDatabase::Open(options);
      for (uint64_t i = 0; i < 100; ++i) db->Find(Key(i));
      db->Store(Key(5000 + p), Entry());
      _exit(db->Find(Key(5000 + p)) == Entry() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_TRUE(Open()->List().ok());
}

TEST(CacheFolderTest, FollowsTheEnvironment) {
  setenv("HOME", "/home/x", 1);
  unsetenv("QUERN_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(DefaultCacheFolder(), "/home/x/.cache/quern");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(DefaultCacheFolder(), "/xdg/quern");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(DefaultCacheFolder(), "/home/x/.cache/quern");
  setenv("QUERN_CACHE_DIR", "/own", 1);
  EXPECT_EQ(DefaultCacheFolder(), "/own");
}

}  // namespace
}  // namespace quern
