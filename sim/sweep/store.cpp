#include "sweep/store.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace rehearse {

namespace {

// Figures with a column of their own, and where they stand in a report.
struct Figure {
  const char* column;
  const char* pointer;
};
constexpr std::array kFigures = {Figure{"step_time_s", "/step_time_s"},
                                 Figure{"tokens_per_s_per_gpu", "/tokens_per_s_per_gpu"},
                                 Figure{"mfu", "/mfu"}, Figure{"bubble_fraction", "/bubble_fraction/mean"},
                                 Figure{"peak_memory_bytes", "/memory/peak_bytes"}};

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name) text += letter == '"' ? "\"\"" : std::string(1, letter);
  return text + "\"";
}

std::string rows_table(const Grid& grid) {
  std::string sql = "CREATE TABLE rows (point INTEGER PRIMARY KEY";
  for (const SweptField& field : grid.fields) sql += ", " + quoted(field.name);
  sql += ", state TEXT NOT NULL, reason TEXT NOT NULL";
  for (const Figure& figure : kFigures) sql += fmt::format(", {} REAL", figure.column);
  return sql + ", report TEXT NOT NULL)";
}

std::string insertion(const Grid& grid) {
  std::string places = "?";
  for (std::size_t i = 0; i < grid.fields.size() + kFigures.size() + 3; ++i) places += ", ?";
  return fmt::format("INSERT OR REPLACE INTO rows VALUES ({})", places);
}

void bind(Statement& statement, const Json& value) {
  if (value.is_number_integer()) {
    statement.bind(value.get<std::int64_t>());
  } else if (value.is_number()) {
    statement.bind(value.get<double>());
  } else {
    statement.bind(value.is_string() ? value.get<std::string>() : value.dump());
  }
}

RowState parse_state(const std::string& text) {
  for (const RowState state :
       {RowState::done, RowState::illegal, RowState::does_not_fit, RowState::missing, RowState::failed}) {
    if (to_string(state) == text) return state;
  }
  throw std::runtime_error(fmt::format("a row has the unknown state \"{}\"", text));
}

bool has_sweep(const Database& database, const std::string& schema) {
  return Statement(database, "SELECT 1 FROM " + schema + ".sqlite_master WHERE name = 'sweep'").step();
}

void require_same(const std::string& path, const std::string& found, const std::string& identity,
                  const std::string& instead) {
  if (found == identity) return;
  throw InputError({"command line", path, "holds the rows of another sweep", found, instead});
}

}  // namespace

Store::Store(const std::string& path, const Json& identity, const Grid& grid, bool resume)
    : path_(path), identity_(identity.dump()), grid_(grid), database_(path) {
  Transaction transaction(database_);
  if (has_sweep(database_, "main")) {
    Statement sweep(database_, "SELECT identity FROM sweep");
    require_same(path, sweep.step() ? sweep.text(0) : "", identity_,
                 "the flags of that sweep, or another --store");
    if (!resume && !known().empty()) {
      throw InputError(
          {"command line", "--store", "holds rows of this sweep already", path, "--resume, or another file"});
    }
  } else {
    database_.execute("CREATE TABLE sweep (identity TEXT NOT NULL);" + rows_table(grid));
    Statement(database_, "INSERT INTO sweep VALUES (?)").bind(identity_).step();
  }
  transaction.commit();
}

std::set<Point> Store::known() const {
  std::set<Point> points;
  Statement rows(database_, "SELECT point FROM rows WHERE state <> ?");
  rows.bind(to_string(RowState::failed));
  while (rows.step()) points.insert(rows.integer(0));
  return points;
}

void Store::put(Point point, const Row& row) {
  Statement insert(database_, insertion(grid_));
  insert.bind(point);
  for (const Json& value : grid_.values_at(point)) bind(insert, value);
  insert.bind(to_string(row.state)).bind(row.reason);
  for (const Figure& figure : kFigures) {
    const Json::json_pointer pointer(figure.pointer);
    row.report.contains(pointer) ? bind(insert, row.report[pointer]) : (void)insert.bind_null();
  }
  insert.bind(row.report.dump(-1, ' ', false, Json::error_handler_t::replace)).step();
}

int Store::merge(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    throw InputError({"command line", "--merge", "no such store", path, ""});
  Statement(database_, "ATTACH DATABASE ? AS other").bind(path).step();
  const bool is_store = has_sweep(database_, "other");
  std::string found;
  if (is_store) {
    Statement sweep(database_, "SELECT identity FROM other.sweep");
    found = sweep.step() ? sweep.text(0) : "";
  }
  require_same(path, found, identity_, "a store of this sweep");
  database_.execute(
      "INSERT OR REPLACE INTO main.rows SELECT * FROM other.rows "
      "WHERE point NOT IN (SELECT point FROM main.rows WHERE state <> 'failed')");
  const int taken = database_.changes();
  database_.execute("DETACH DATABASE other");
  return taken;
}

void Store::each(const std::function<void(Point, const Row&)>& visit) const {
  Statement rows(database_, "SELECT point, state, reason, report FROM rows ORDER BY point");
  while (rows.step())
    visit(rows.integer(0), {parse_state(rows.text(1)), rows.text(2), Json::parse(rows.text(3))});
}

}  // namespace rehearse
