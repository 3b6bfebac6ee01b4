#include "sweep/sqlite.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "base/read_record.h"

namespace rehearse {

namespace {

// Another process may be writing its row.
constexpr int kPatienceMs = 60'000;

// of one value; a report has about ten thousand bytes
constexpr int kMaxBytes = 64'000'000;

// More SQLite steps than reading every row of an intact file takes.
constexpr int kStepsAtOnce = 1'000'000;
constexpr std::uintmax_t kBytesAtOnce = 100'000;

// During its lifetime, operations with more steps are interrupted.
class Budget {
 public:
  Budget(sqlite3* handle, std::uintmax_t bytes)
      : handle_(handle), left_(static_cast<std::int64_t>(bytes / kBytesAtOnce + 10)) {
    sqlite3_progress_handler(handle, kStepsAtOnce, count_down, this);
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget() { sqlite3_progress_handler(handle_, 0, nullptr, nullptr); }

 private:
  static int count_down(void* self) { return --static_cast<Budget*>(self)->left_ < 0 ? 1 : 0; }

  sqlite3* handle_;
  std::int64_t left_;
};

// Disables code in a file from another author.
void trust_nothing(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxBytes);
}

// Whether the file is damaged, or not a database. The program's own SQL is correct, so errors come from the
// file. A writable file that SQLite reports as read-only is so by its contents.
bool is_damaged(sqlite3* handle, const std::string& path) {
  const int code = sqlite3_errcode(handle) & 0xff;
  if (sqlite3_extended_errcode(handle) == SQLITE_IOERR_SHORT_READ) return true;  // the file lacks a page
  if (code == SQLITE_READONLY) return access(path.c_str(), W_OK) == 0;
  return code == SQLITE_ERROR || code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_TOOBIG ||
         code == SQLITE_INTERRUPT;
}

// The error that prevents writing at the path; 0 if none. SQLite reports the error of its last attempt, which
// may concern another file.
int why_not_writable(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file >= 0) {
    close(file);
    return 0;
  }
  if (errno != ENOENT) return errno;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

// row_digest(VALUE...): the digest of the values as texts, with their types.
void row_digest(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int type = sqlite3_value_type(values[i]);
    const auto* letters = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
    const std::string value =
        letters ? std::string(letters, static_cast<std::size_t>(sqlite3_value_bytes(values[i]))) : "";
    text += fmt::format("{}:{}:{};", type, value.size(), value);
  }
  const std::string found = digest(text);
  sqlite3_result_text(context, found.data(), static_cast<int>(found.size()), SQLITE_TRANSIENT);
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

Database::Database(const std::string& path) : path_(path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(path.c_str(), &handle);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail();
  sqlite3_busy_timeout(handle, kPatienceMs);
  trust_nothing(handle);
  sqlite3_create_function(handle, "row_digest", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, row_digest,
                          nullptr, nullptr);
}

void Database::attach(const std::string& path, const std::string& schema) {
  attached_ = path;
  Statement(*this, "ATTACH DATABASE ? AS " + schema).bind(path).step();
}

void Database::detach(const std::string& schema) {
  execute("DETACH DATABASE " + schema);
  attached_.clear();
}

void Database::require_intact(const std::string& schema, const std::string& path) {
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(path, none);
  const Budget budget(handle_.get(), none ? 0 : bytes);
  std::string found;
  try {
    Statement check(*this, fmt::format("PRAGMA {}.quick_check(1)", schema));
    found = check.step() ? check.text(0) : "";
  } catch (const std::runtime_error& error) {
    if ((sqlite3_errcode(handle_.get()) & 0xff) != SQLITE_NOMEM) throw;
    found = error.what();  // SQLite's message for some files that are not databases
  }
  if (found != "ok") throw InputError({path, "", "is a damaged database", found, ""});
}

void Database::fail() const {
  if (is_damaged(handle_.get(), path_))
    throw InputError({attached_.empty() ? path_ : attached_, "", "is no database of SQLite, or a damaged one",
                      sqlite3_errmsg(handle_.get()), ""});
  const int code = sqlite3_errcode(handle_.get()) & 0xff;
  const bool of_the_place = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
  const int error = of_the_place ? why_not_writable(path_) : sqlite3_system_errno(handle_.get());
  throw std::runtime_error(fmt::format("{}: {}{}", path_, sqlite3_errmsg(handle_.get()),
                                       error == 0 ? "" : fmt::format(" ({})", std::strerror(error))));
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

int Database::changes() const {
  return sqlite3_changes(handle_.get());
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(const Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  require(sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &statement, nullptr));
  statement_.reset(statement);
}

void Statement::require(int code) const {
  if (code != SQLITE_OK) database_.fail();
}

Statement& Statement::bind(std::int64_t value) {
  require(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  require(sqlite3_bind_double(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(const std::string& value) {
  require(sqlite3_bind_text(statement_.get(), ++bound_, value.data(), static_cast<int>(value.size()),
                            SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind_null() {
  require(sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail();
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace rehearse
