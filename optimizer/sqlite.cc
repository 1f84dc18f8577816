#include "optimizer/sqlite.h"

#include <sqlite3.h>

#include "rewrite/check.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

absl::Status StatusOf(int code, sqlite3* connection, std::string_view doing) {
  const std::string message = Concat(
      doing, ": ", connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message);
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(message);
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::BindText(int parameter, std::string_view text) {
  const int code = sqlite3_bind_text(statement_, parameter, text.data(),
                                     static_cast<int>(text.size()), SQLITE_STATIC);
  QUERN_CHECK(code == SQLITE_OK);
}
void SqliteStatement::BindInteger(int parameter, int64_t value) {
  QUERN_CHECK(sqlite3_bind_int64(statement_, parameter, value) == SQLITE_OK);
}
void SqliteStatement::BindReal(int parameter, double value) {
  QUERN_CHECK(sqlite3_bind_double(statement_, parameter, value) == SQLITE_OK);
}
void SqliteStatement::BindBlob(int parameter, std::span<const std::byte> bytes) {
  const int code = bytes.empty() ? sqlite3_bind_zeroblob(statement_, parameter, 0)
                                 : sqlite3_bind_blob64(statement_, parameter, bytes.data(),
                                                       bytes.size(), SQLITE_STATIC);
  QUERN_CHECK(code == SQLITE_OK);
}

absl::StatusOr<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return StatusOf(code, connection_, "tuning database");
}

std::string SqliteStatement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}
int64_t SqliteStatement::Integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double SqliteStatement::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::span<const std::byte> SqliteStatement::Blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::StatusOr<std::unique_ptr<Sqlite>> Sqlite::Open(const std::string& path, Mode mode,
                                                     int busy_milliseconds) {
  sqlite3* connection = nullptr;
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  std::unique_ptr<Sqlite> opened(new Sqlite(connection));
  if (code != SQLITE_OK) return StatusOf(code, connection, Concat("opening ", path));
  sqlite3_busy_timeout(connection, busy_milliseconds);
  // Closing removes the journal by its name, which may be that of a file that another process has
  // put in the place of this one.
  int persist = 1;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
  return opened;
}

Sqlite::~Sqlite() { sqlite3_close_v2(connection_); }

absl::Status Sqlite::Execute(const char* sql) {
  const int code = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : StatusOf(code, connection_, "tuning database");
}

absl::StatusOr<SqliteStatement> Sqlite::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_, sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return StatusOf(code, connection_, "tuning database");
  return SqliteStatement(connection_, statement);
}

}  // namespace quern
