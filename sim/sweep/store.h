// Where are the rows of a sweep stored, so that a kill at any time loses no finished row?
//
// A SQLite file with two tables and nothing else. `sweep` has one JSON, the identity of the sweep. `rows` has
// a line a point:
//   point, one column for each swept field, state, reason, step_time_s, tokens_per_s_per_gpu, mfu,
//   bubble_fraction, peak_memory_bytes, inputs (JSON), report (JSON), digest
// `inputs` are the digests of the program and of the files that were read for the row. A row is stale when
// one of them has changed. So is a row that its own `digest` does not match: a disk or a program changed it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sweep/grid.h"
#include "sweep/row.h"
#include "sweep/sqlite.h"

namespace rehearse {

class Store {
 public:
  // Opens or creates the file for the sweep with this `identity`, and drops stale rows. InputError when it
  // has rows of another sweep, or of this one and `resume` is false, or is not a store.
  Store(const std::string& path, const Json& identity, const Grid& grid, bool resume);

  int dropped() const { return dropped_; }                           // stale rows
  const std::set<std::string>& changed() const { return changed_; }  // changed inputs, of merged rows too

  // Points that need not run again: all except failed ones.
  std::set<Point> known() const;

  // On disk when it returns: a transaction of its own.
  void put(Point point, const Row& row);

  // The fastest of the finished rows, the first of equal ones; nothing where none is done.
  std::optional<Point> fastest() const;

  struct Merged {
    int taken = 0;
    int stale = 0;         // rows that were not taken
    bool is_self = false;  // the other store is this one
  };
  // Takes rows of another store of the same sweep that are missing here and not stale. InputError when it is
  // missing, of another sweep or not a store.
  Merged merge(const std::string& path);

  // Visits every row, by point. InputError, with the advice to sweep again, for a row that this program did
  // not write. The same where `visit` lacks a field of its report, as an earlier version may have written it.
  void each(const std::function<void(Point, const Row&)>& visit) const;

 private:
  struct Count {
    std::string inputs;
    int rows = 0;
  };
  std::vector<Count> inputs_of(const std::string& schema) const;
  bool is_stale(const std::string& inputs);
  void drop_stale();
  void note_damaged(int rows);

  std::string path_;
  std::string identity_;
  const Grid& grid_;
  Database database_;
  std::map<std::string, std::string> digests_;  // current ones, by name
  std::set<std::string> changed_;
  int dropped_ = 0;
};

}  // namespace rehearse
