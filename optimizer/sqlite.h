#ifndef QUERN_OPTIMIZER_SQLITE_H_
#define QUERN_OPTIMIZER_SQLITE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace quern {

/// A prepared statement. Parameters count from 1, columns from 0. Text and blobs that are bound
/// must live until Step returns.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* connection, sqlite3_stmt* statement)
      : connection_(connection), statement_(statement) {}
  SqliteStatement(SqliteStatement&& other) noexcept
      : connection_(other.connection_), statement_(other.statement_) {
    other.statement_ = nullptr;
  }
  SqliteStatement& operator=(SqliteStatement&&) = delete;
  ~SqliteStatement();

  void BindText(int parameter, std::string_view text);
  void BindInteger(int parameter, int64_t value);
  void BindReal(int parameter, double value);
  void BindBlob(int parameter, std::span<const std::byte> bytes);

  /// True: there is a row. False: the statement is done.
  absl::StatusOr<bool> Step();

  std::string Text(int column) const;
  int64_t Integer(int column) const;
  double Real(int column) const;
  /// Valid until the next Step.
  std::span<const std::byte> Blob(int column) const;

 private:
  sqlite3* connection_;
  sqlite3_stmt* statement_;
};

/// A connection to one file, for one thread at a time.
///
/// Errors: DataLoss if the file is damaged, PermissionDenied if it cannot be opened or written,
/// Unavailable if another process held it for too long.
class Sqlite {
 public:
  enum class Mode : uint8_t { kReadWrite, kReadOnly };
  static absl::StatusOr<std::unique_ptr<Sqlite>> Open(const std::string& path, Mode mode,
                                                      int busy_milliseconds);
  ~Sqlite();
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  absl::Status Execute(const char* sql);
  absl::StatusOr<SqliteStatement> Prepare(std::string_view sql);

 private:
  explicit Sqlite(sqlite3* connection) : connection_(connection) {}
  sqlite3* connection_;
};

}  // namespace quern

#endif  // QUERN_OPTIMIZER_SQLITE_H_
