// SQLite's C interface with values, errors as exceptions and nothing left open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace rehearse {

// An open database file; created when missing. Errors are std::runtime_error naming the file: InputError
// where it is its contents that are wrong. Triggers and views, which a file may bring along, do not run.
class Database {
 public:
  explicit Database(const std::string& path);

  // Attaches the database of `path` as `schema`, and lets go of it. In between, damage is the file's: that of
  // the database itself would have been found before.
  void attach(const std::string& path, const std::string& schema);
  void detach(const std::string& schema);

  // Of the database that lies in `path`, "main" or attached. InputError where its pages do not hold together;
  // to be asked before anything else is read, which may take forever in such a file.
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
  void reset();  // to be bound and run again

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

// All that is executed while it lives, or nothing.
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
