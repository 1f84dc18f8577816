#ifndef QUERN_OPTIMIZER_DATABASE_H_
#define QUERN_OPTIMIZER_DATABASE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rewrite/uop.h"

namespace quern {

class Sqlite;

/// Changes when actions or kernels change their meaning, so that older entries are not found.
inline constexpr int kTuningSchema = 2;

/// Everything on which the outcome of a search depends.
struct TuningKey {
  Hash128 ast;           ///< of the kernel before any action
  std::string device;    ///< model, features, threads
  std::string strategy;  ///< with every knob that changes the result
  std::string llvm_version;
  int schema = kTuningSchema;
  bool operator==(const TuningKey&) const = default;
};

struct TuningEntry {
  std::string actions;         ///< as ParseActions reads them
  double seconds = 0;          ///< median of the winner
  std::string details = "{}";  ///< a JSON object: how it was found
  bool operator==(const TuningEntry&) const = default;
};

struct TuningRecord {
  TuningKey key;
  TuningEntry entry;
  int64_t created = 0;  ///< seconds since 1970
};

/// What object code depends on.
struct ObjectKey {
  Hash128 ast;           ///< of the scheduled kernel
  std::string device;    ///< model and features
  std::string compiler;  ///< version of the code generator and of LLVM
  std::string flags;     ///< everything else that changes the code
};

/// $QUERN_CACHE_DIR, else $XDG_CACHE_HOME/quern, else ~/.cache/quern; "" if none is set.
std::string DefaultCacheFolder();

struct DatabaseOptions {
  std::string folder = DefaultCacheFolder();
  /// Told when the database is damaged, cannot be opened or cannot be written; once per reason.
  /// The default writes to stderr.
  std::function<void(std::string_view)> warn;
  int busy_milliseconds = 10000;
  int64_t max_object_bytes = int64_t{512} << 20;  ///< older object code is dropped beyond this
};

/// Results of searches and object code on disk, shared by any number of processes and threads.
///
/// It is a cache, so nothing that can happen to its file is an error to those who look up or store:
/// a damaged file is set aside (as `….damaged`) and begun anew, a folder that cannot be written is
/// only read or not used at all; each time the caller is told through `warn`.
class TuningDatabase {
 public:
  static std::unique_ptr<TuningDatabase> Open(DatabaseOptions options = {});
  ~TuningDatabase();

  std::optional<TuningEntry> Find(const TuningKey& key);
  void Store(const TuningKey& key, const TuningEntry& entry);

  std::optional<std::vector<std::byte>> FindObject(const ObjectKey& key);
  void StoreObject(const ObjectKey& key, std::span<const std::byte> code);

  /// All tuning entries, oldest first. Unlike look-ups, these report what goes wrong.
  absl::StatusOr<std::vector<TuningRecord>> List();
  /// Adds records in one transaction; of two with the same key the faster stays. Returns how many
  /// were new or faster.
  absl::StatusOr<int> Add(std::span<const TuningRecord> records);
  absl::Status Clear();

  /// Number and bytes of stored object code.
  struct ObjectStats {
    int64_t count = 0;
    int64_t bytes = 0;
  };
  absl::StatusOr<ObjectStats> Objects();

  /// False if nothing can be kept; look-ups miss then.
  bool enabled() const { return connection_ != nullptr; }
  const std::string& path() const { return path_; }

 private:
  explicit TuningDatabase(DatabaseOptions options);

  void Warn(const std::string& message);
  absl::Status Connect();
  absl::Status SetAside();
  absl::Status DropOldObjects();
  /// Runs `work` under the lock; after damage, once more on a new file.
  absl::Status Guarded(const std::function<absl::Status(Sqlite&)>& work);

  DatabaseOptions options_;
  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<Sqlite> connection_;
  bool read_only_ = false;
  uint64_t file_identity_ = 0;  ///< of the file that is open, to see that another replaced it
  std::vector<std::string> warned_;
};

/// One JSON object a line.
std::string ExportRecords(std::span<const TuningRecord> records);
/// The inverse; errors name the line.
absl::StatusOr<std::vector<TuningRecord>> ImportRecords(std::string_view lines);

/// 32 hexadecimal digits.
std::string HashToHex(const Hash128& hash);
std::optional<Hash128> HashFromHex(std::string_view hex);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_DATABASE_H_
