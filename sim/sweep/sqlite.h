// SQLite's C interface with C++ values, exceptions for errors, and no leaks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace rehearse {

// An open database file; created when missing. Errors are std::runtime_error naming the file, or InputError
// where its contents are wrong. Triggers and views in the file do not run. SQL may call row_digest(VALUE...).
class Database {
 public:
  explicit Database(const std::string& path);

  // Attaches the database of `path` as `schema`, and detaches it. In between, damage is attributed to that
  // file: damage of the main database would have been found before.
  void attach(const std::string& path, const std::string& schema);
  void detach(const std::string& schema);

  // InputError where the pages of the database `schema` ("main" or attached) in `path` are inconsistent. Must
  // be called before any other read, as reading such a file may never end.
  void require_intact(const std::string& schema, const std::string& path);

  void execute(const std::string& sql);  // one statement or several, without results
  int changes() const;                   // rows that the last statement wrote

  sqlite3* handle() const { return handle_.get(); }
  [[noreturn]] void fail() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::string path_, attached_ = {};
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement. Parameters are bound in order, from the first; columns count from 0.
class Statement {
 public:
  Statement(const Database& database, const std::string& sql);

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(const std::string& value);
  Statement& bind_null();

  bool step();   // true while there is a row
  void reset();  // so that it can be bound and run again

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;  // "" for null

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void require(int code) const;

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

// A transaction: all statements during its lifetime, or none.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace rehearse
