// Where do the rows of a sweep lie, so that a kill at any moment loses none that was known?
//
// A SQLite file of two tables, and nothing else. `sweep` holds one JSON, what is swept. `rows` has a line a
// point:
//   point, one column for each swept field, state, reason, step_time_s, tokens_per_s_per_gpu, mfu,
//   bubble_fraction, peak_memory_bytes, inputs (JSON), report (JSON)
// `inputs` are the digests of the program and of the files that were read for the row. A row is stale when
// one of them is another one today.
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
  // Opens or makes the file for the sweep that `identity` describes, and drops stale rows. InputError when it
  // holds the rows of another sweep, or of this one and `resume` is false, or is no store.
  Store(const std::string& path, const Json& identity, const Grid& grid, bool resume);

  int dropped() const { return dropped_; }                           // stale rows
  const std::set<std::string>& changed() const { return changed_; }  // what made rows stale, merged ones too

  // Points that need not run again: all but those that failed.
  std::set<Point> known() const;

  // On disk when it returns: a transaction of its own.
  void put(Point point, const Row& row);

  // Of the rows that are done the fastest, the first of equal ones; nothing where none is done.
  std::optional<Point> fastest() const;

  struct Merged {
    int taken = 0;
    int stale = 0;         // rows that were left
    bool is_self = false;  // the other store is this one
  };
  // Takes the rows of another store of the same sweep that this one lacks and that are not stale. InputError
  // when it is missing, of another sweep or no store.
  Merged merge(const std::string& path);

  // Every row, by point. InputError, which says to sweep again, for one that this program did not write, also
  // where `visit` misses a field of its report: an earlier version may have written it.
  void each(const std::function<void(Point, const Row&)>& visit) const;

 private:
  struct Count {
    std::string inputs;
    int rows = 0;
  };
  std::vector<Count> inputs_of(const std::string& schema) const;
  bool is_stale(const std::string& inputs);
  void drop_stale();

  std::string path_;
  std::string identity_;
  const Grid& grid_;
  Database database_;
  std::map<std::string, std::string> digests_;  // of today, by name
  std::set<std::string> changed_;
  int dropped_ = 0;
};

}  // namespace rehearse
