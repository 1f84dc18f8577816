#include "optimizer/database.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "optimizer/sqlite.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

// The number is that of the tables below: a program with other tables uses another file.
constexpr std::string_view kFileName = "tuning-1.db";

// NORMAL loses no consistency in WAL mode, only the last commits when the machine dies.
constexpr const char* kPragmas =
    "PRAGMA journal_size_limit=0;"
    "PRAGMA synchronous=NORMAL; PRAGMA cell_size_check=ON";

constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS tuning("
    "  ast TEXT NOT NULL, device TEXT NOT NULL, strategy TEXT NOT NULL, llvm TEXT NOT NULL,"
    "  schema INTEGER NOT NULL, actions TEXT NOT NULL, seconds REAL NOT NULL,"
    "  details TEXT NOT NULL, created INTEGER NOT NULL,"
    "  PRIMARY KEY(ast, device, strategy, llvm, schema)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS object("
    "  ast TEXT NOT NULL, device TEXT NOT NULL, compiler TEXT NOT NULL, flags TEXT NOT NULL,"
    "  code BLOB NOT NULL, bytes INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    "  created INTEGER NOT NULL, PRIMARY KEY(ast, device, compiler, flags));";

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// SQLite does not notice a changed byte inside a blob, and this one will be executed.
int64_t Checksum(std::span<const std::byte> bytes) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (std::byte b : bytes) h = (h ^ static_cast<uint64_t>(b)) * 0x100000001b3ull;
  return static_cast<int64_t>(h);
}

uint64_t FileIdentity(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) return 0;
  return static_cast<uint64_t>(s.st_ino) * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(s.st_dev);
}

// Held while a damaged file is exchanged, so that only one process does it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : file_(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  ~FolderLock() {
    if (file_ >= 0) close(file_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

void BindKey(SqliteStatement& s, const std::string& hex, const TuningKey& key) {
  s.BindText(1, hex);
  s.BindText(2, key.device);
  s.BindText(3, key.strategy);
  s.BindText(4, key.llvm_version);
  s.BindInteger(5, key.schema);
}
void BindKey(SqliteStatement& s, const std::string& hex, const ObjectKey& key) {
  s.BindText(1, hex);
  s.BindText(2, key.device);
  s.BindText(3, key.compiler);
  s.BindText(4, key.flags);
}

// Runs a statement that may return rows; `row` is called for each.
absl::Status Run(Sqlite& db, std::string_view sql,
                 const std::function<void(SqliteStatement&)>& bind,
                 const std::function<void(SqliteStatement&)>& row = nullptr) {
  absl::StatusOr<SqliteStatement> s = db.Prepare(sql);
  if (!s.ok()) return s.status();
  if (bind) bind(*s);
  for (;;) {
    absl::StatusOr<bool> more = s->Step();
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    if (row) row(*s);
  }
}

absl::Status Insert(Sqlite& db, const TuningRecord& r, std::string_view conflict) {
  const std::string hex = HashToHex(r.key.ast);
  return Run(db,
             Concat("INSERT INTO tuning VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
                    "actions=excluded.actions, seconds=excluded.seconds, "
                    "details=excluded.details, created=excluded.created ",
                    conflict),
             [&](SqliteStatement& s) {
               BindKey(s, hex, r.key);
               s.BindText(6, r.entry.actions);
               s.BindReal(7, r.entry.seconds);
               s.BindText(8, r.entry.details);
               s.BindInteger(9, r.created);
             });
}

}  // namespace

TuningDatabase::TuningDatabase(DatabaseOptions options) : options_(std::move(options)) {
  if (!options_.warn) {
    options_.warn = [](std::string_view message) {
      std::fprintf(stderr, "quern: warning: %.*s\n", static_cast<int>(message.size()),
                   message.data());
    };
  }
  path_ = Concat(options_.folder, "/", kFileName);
}

TuningDatabase::~TuningDatabase() = default;

std::unique_ptr<TuningDatabase> TuningDatabase::Open(DatabaseOptions options) {
  std::unique_ptr<TuningDatabase> db(new TuningDatabase(std::move(options)));
  if (db->options_.folder.empty()) {
    db->path_.clear();
    db->Warn("no cache folder: none of QUERN_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    return db;
  }
  std::error_code error;
  std::filesystem::create_directories(db->options_.folder, error);
  absl::Status s;
  {
    // Not while another process exchanges a damaged file, and its journal before it.
    const FolderLock lock(db->options_.folder);
    s = db->Connect();
  }
  if (absl::IsDataLoss(s)) s = db->SetAside();
  if (s.ok() && !db->read_only_) s = db->DropOldObjects();
  if (!s.ok()) {
    db->connection_ = nullptr;
    db->Warn(Concat("results are not cached: ", std::string(s.message())));
  }
  return db;
}

void TuningDatabase::Warn(const std::string& message) {
  if (std::find(warned_.begin(), warned_.end(), message) != warned_.end()) return;
  warned_.push_back(message);
  options_.warn(message);
}

absl::Status TuningDatabase::Connect() {
  connection_ = nullptr;
  read_only_ = false;
  // Of the file before it is opened: if another process exchanges it now, this one may have opened
  // the old one, and must not take the new one for damaged.
  const uint64_t before = FileIdentity(path_);
  const auto identity = [&] { return before != 0 ? before : FileIdentity(path_); };
  absl::StatusOr<std::unique_ptr<Sqlite>> db =
      Sqlite::Open(path_, Sqlite::Mode::kReadWrite, options_.busy_milliseconds);
  absl::Status s = db.status();
  if (db.ok()) {
    // SQLite does not wait for others while it switches to WAL, so this waits itself.
    for (int attempt = 0;; ++attempt) {
      s = (*db)->Execute("PRAGMA journal_mode=WAL");
      if (!absl::IsUnavailable(s) || attempt * 10 >= options_.busy_milliseconds) break;
      usleep(10000);
    }
    if (s.ok()) s = (*db)->Execute(kPragmas);
    if (s.ok()) s = (*db)->Execute("BEGIN IMMEDIATE");
    if (s.ok()) {
      s = (*db)->Execute(kTables);
      const absl::Status end = (*db)->Execute(s.ok() ? "COMMIT" : "ROLLBACK");
      if (s.ok()) s = end;
    }
  }
  if (absl::IsPermissionDenied(s)) {
    absl::StatusOr<std::unique_ptr<Sqlite>> reader =
        Sqlite::Open(path_, Sqlite::Mode::kReadOnly, options_.busy_milliseconds);
    if (reader.ok() && (*reader)->Execute("SELECT 1 FROM tuning LIMIT 1").ok()) {
      Warn(Concat("the cache ", path_, " cannot be written; it is only read"));
      connection_ = *std::move(reader);
      read_only_ = true;
      file_identity_ = identity();
      return absl::OkStatus();
    }
  }
  if (!s.ok()) {
    file_identity_ = identity();
    return s;
  }
  connection_ = *std::move(db);
  file_identity_ = identity();
  return absl::OkStatus();
}

absl::Status TuningDatabase::SetAside() {
  connection_ = nullptr;
  const FolderLock lock(options_.folder);
  // If another process has exchanged the file meanwhile, the new one is as good as ours would be.
  if (FileIdentity(path_) == file_identity_) {
    const std::string aside = path_ + ".damaged";
    Warn(Concat("the cache ", path_, " is damaged; it is kept as ", aside,
                " and a new one is begun"));
    for (const char* suffix : {"-wal", "-shm", ""}) {
      // Renaming replaces what an earlier accident has left.
      if (std::rename((path_ + suffix).c_str(), (aside + suffix).c_str()) != 0) {
        std::remove((path_ + suffix).c_str());
      }
    }
  }
  return Connect();
}

absl::Status TuningDatabase::Guarded(const std::function<absl::Status(Sqlite&)>& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (connection_ == nullptr) {
    return absl::FailedPreconditionError(Concat("the cache ", path_, " is not available"));
  }
  absl::Status s = work(*connection_);
  if (!absl::IsDataLoss(s) || read_only_) return s;
  s = SetAside();
  return s.ok() ? work(*connection_) : s;
}

absl::Status TuningDatabase::DropOldObjects() {
  int64_t total = 0;
  absl::Status s = Run(*connection_, "SELECT coalesce(sum(bytes),0) FROM object", nullptr,
                       [&](SqliteStatement& row) { total = row.Integer(0); });
  if (!s.ok() || total <= options_.max_object_bytes) return s;
  // Down to half, so that this does not happen at every start.
  return Run(*connection_,
             "DELETE FROM object WHERE rowid IN (SELECT rowid FROM (SELECT rowid, sum(bytes) OVER "
             "(ORDER BY created DESC, rowid DESC) AS newer FROM object) WHERE newer > ?)",
             [&](SqliteStatement& q) { q.BindInteger(1, options_.max_object_bytes / 2); });
}

std::optional<TuningEntry> TuningDatabase::Find(const TuningKey& key) {
  std::optional<TuningEntry> found;
  const std::string hex = HashToHex(key.ast);
  const absl::Status s = Guarded([&](Sqlite& db) {
    found.reset();
    return Run(
        db,
        "SELECT actions, seconds, details FROM tuning WHERE ast=? AND device=? AND strategy=? AND "
        "llvm=? AND schema=?",
        [&](SqliteStatement& q) { BindKey(q, hex, key); },
        [&](SqliteStatement& row) { found = TuningEntry{row.Text(0), row.Real(1), row.Text(2)}; });
  });
  if (!s.ok() && enabled()) Warn(std::string(s.message()));
  return found;
}

void TuningDatabase::Store(const TuningKey& key, const TuningEntry& entry) {
  if (!enabled() || read_only_) return;
  const absl::Status s = Guarded([&](Sqlite& db) { return Insert(db, {key, entry, Now()}, ""); });
  if (!s.ok()) Warn(Concat("a result is not cached: ", std::string(s.message())));
}

std::optional<std::vector<std::byte>> TuningDatabase::FindObject(const ObjectKey& key) {
  std::optional<std::vector<std::byte>> found;
  const std::string hex = HashToHex(key.ast);
  const absl::Status s = Guarded([&](Sqlite& db) {
    found.reset();
    return Run(
        db, "SELECT code, checksum FROM object WHERE ast=? AND device=? AND compiler=? AND flags=?",
        [&](SqliteStatement& q) { BindKey(q, hex, key); },
        [&](SqliteStatement& row) {
          const std::span<const std::byte> code = row.Blob(0);
          if (Checksum(code) == row.Integer(1)) found.emplace(code.begin(), code.end());
        });
  });
  if (!s.ok() && enabled()) Warn(std::string(s.message()));
  return found;
}

void TuningDatabase::StoreObject(const ObjectKey& key, std::span<const std::byte> code) {
  if (!enabled() || read_only_) return;
  const std::string hex = HashToHex(key.ast);
  const absl::Status s = Guarded([&](Sqlite& db) {
    return Run(db, "INSERT OR REPLACE INTO object VALUES(?,?,?,?,?,?,?,?)",
               [&](SqliteStatement& q) {
                 BindKey(q, hex, key);
                 q.BindBlob(5, code);
                 q.BindInteger(6, static_cast<int64_t>(code.size()));
                 q.BindInteger(7, Checksum(code));
                 q.BindInteger(8, Now());
               });
  });
  if (!s.ok()) Warn(Concat("object code is not cached: ", std::string(s.message())));
}

absl::StatusOr<std::vector<TuningRecord>> TuningDatabase::List() {
  std::vector<TuningRecord> records;
  const absl::Status s = Guarded([&](Sqlite& db) {
    records.clear();
    return Run(db, "SELECT * FROM tuning ORDER BY created, ast, device, strategy", nullptr,
               [&](SqliteStatement& row) {
                 TuningRecord r;
                 r.key = {HashFromHex(row.Text(0)).value_or(Hash128{}), row.Text(1), row.Text(2),
                          row.Text(3), static_cast<int>(row.Integer(4))};
                 r.entry = {row.Text(5), row.Real(6), row.Text(7)};
                 r.created = row.Integer(8);
                 records.push_back(std::move(r));
               });
  });
  if (!s.ok()) return s;
  return records;
}

absl::StatusOr<int> TuningDatabase::Add(std::span<const TuningRecord> records) {
  int changed = 0;
  const absl::Status s = Guarded([&](Sqlite& db) {
    changed = 0;
    absl::Status s = db.Execute("BEGIN IMMEDIATE");
    for (size_t i = 0; s.ok() && i < records.size(); ++i) {
      s = Insert(db, records[i], "WHERE excluded.seconds < seconds");
      if (!s.ok()) break;
      s = Run(db, "SELECT changes()", nullptr,
              [&](SqliteStatement& row) { changed += static_cast<int>(row.Integer(0)); });
    }
    const absl::Status end = db.Execute(s.ok() ? "COMMIT" : "ROLLBACK");
    return s.ok() ? end : s;
  });
  if (!s.ok()) return s;
  return changed;
}

absl::Status TuningDatabase::Clear() {
  return Guarded([](Sqlite& db) {
    absl::Status s = db.Execute("DELETE FROM tuning; DELETE FROM object;");
    // Giving the space back fails while others read, and that does not matter.
    if (s.ok()) db.Execute("VACUUM").IgnoreError();
    return s;
  });
}

absl::StatusOr<TuningDatabase::ObjectStats> TuningDatabase::Objects() {
  ObjectStats stats;
  const absl::Status s = Guarded([&](Sqlite& db) {
    return Run(db, "SELECT count(*), coalesce(sum(bytes),0) FROM object", nullptr,
               [&](SqliteStatement& row) { stats = {row.Integer(0), row.Integer(1)}; });
  });
  if (!s.ok()) return s;
  return stats;
}

}  // namespace quern
