#include "sweep/store.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <map>

#include "base/json_text.h"
#include "base/read_record.h"
#include "sweep/fastest.h"

namespace rehearse {

namespace {

// Figures with a column of their own, and their pointers into a report.
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

constexpr const char* kProgram = "program";
constexpr const char* kFiles = "files";
constexpr const char* kSweepTable = "CREATE TABLE sweep (identity TEXT NOT NULL)";

std::string rows_table(const Grid& grid) {
  std::string sql = "CREATE TABLE rows (point INTEGER PRIMARY KEY";
  for (const SweptField& field : grid.fields) sql += ", " + quoted(field.name);
  sql += ", state TEXT NOT NULL, reason TEXT NOT NULL";
  for (const Figure& figure : kFigures) sql += fmt::format(", {} REAL", figure.column);
  return sql + ", inputs TEXT NOT NULL, report TEXT NOT NULL, digest TEXT)";
}

// The digest of a row's other columns, as they are stored.
std::string digest_of_columns(const Grid& grid) {
  std::string sql = "row_digest(point";
  for (const SweptField& field : grid.fields) sql += ", " + quoted(field.name);
  sql += ", state, reason";
  for (const Figure& figure : kFigures) sql += fmt::format(", {}", figure.column);
  return sql + ", inputs, report)";
}

std::string insertion(const Grid& grid) {
  std::string places = "?";
  for (std::size_t i = 0; i < grid.fields.size() + kFigures.size() + 4; ++i) places += ", ?";
  return fmt::format("INSERT OR REPLACE INTO rows VALUES ({}, NULL)", places);
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

// Inputs whose change makes the row stale.
std::string text_of_inputs(const Row& row) {
  return Json{{kProgram, program_digest()}, {kFiles, row.files}}.dump(-1, ' ', false,
                                                                      Json::error_handler_t::replace);
}

// A row without figures has null instead, and is not done.
Row parse_row(const std::string& path, Point point, const Statement& row) {
  for (const RowState state :
       {RowState::done, RowState::illegal, RowState::does_not_fit, RowState::missing, RowState::failed}) {
    if (to_string(state) != row.text(1)) continue;
    Json report = parse_json(row.text(3), path);
    if (!report.is_null() || state == RowState::done) report.at(Json::json_pointer(kFigures[0].pointer));
    return {state, row.text(2), std::move(report)};
  }
  throw InputError({path, fmt::format("/rows/{}", point), "has an unknown state", row.text(1), ""});
}

using Tables = std::map<std::string, std::string>;  // by name, how each was made

Tables tables_of(const Database& database, const std::string& schema) {
  Tables tables;
  Statement all(database, "SELECT name, sql FROM " + schema + ".sqlite_schema");
  while (all.step()) tables[all.text(0)] = all.text(1);
  return tables;
}

// Requires the tables and rows of a store of this sweep; nothing else is read.
void require_store(const Database& database, const std::string& schema, const std::string& path,
                   const std::string& identity, const Grid& grid, const std::string& instead) {
  Tables tables = tables_of(database, schema);
  if (tables["sweep"] != kSweepTable) throw InputError({path, "", "is no store of a sweep", "", instead});
  Statement sweep(database, "SELECT identity FROM " + schema + ".sweep");
  const std::string found = sweep.step() ? sweep.text(0) : "";
  if (found != identity)
    throw InputError({"command line", path, "holds the rows of another sweep", found, instead});
  if (tables != Tables{{"sweep", kSweepTable}, {"rows", rows_table(grid)}})
    throw InputError({path, "", "holds other tables than a store of this sweep", "", instead});
  Statement beyond(database, "SELECT point FROM " + schema + ".rows WHERE point < 0 OR point >= ?");
  if (beyond.bind(grid.size()).step())
    throw InputError({path, "", "has a row beyond the points of its sweep", beyond.text(0), instead});
}

}  // namespace

Store::Store(const std::string& path, const Json& identity, const Grid& grid, bool resume)
    : path_(path), identity_(identity.dump()), grid_(grid), database_(path) {
  Transaction transaction(database_);
  database_.require_intact("main", path);
  if (!tables_of(database_, "main").empty()) {
    require_store(database_, "main", path, identity_, grid_, "the flags of that sweep, or another --store");
    if (!resume && !known().empty()) {
      throw InputError(
          {"command line", "--store", "holds rows of this sweep already", path, "--resume, or another file"});
    }
    drop_stale();
  } else {
    database_.execute(std::string(kSweepTable) + ";" + rows_table(grid));
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
  Transaction transaction(database_);
  Statement insert(database_, insertion(grid_));
  insert.bind(point);
  for (const Json& value : grid_.values_at(point)) bind(insert, value);
  insert.bind(to_string(row.state)).bind(row.reason);
  for (const Figure& figure : kFigures) {
    const Json::json_pointer pointer(figure.pointer);
    row.report.contains(pointer) ? bind(insert, row.report[pointer]) : (void)insert.bind_null();
  }
  insert.bind(text_of_inputs(row));
  insert.bind(row.report.dump(-1, ' ', false, Json::error_handler_t::replace)).step();
  Statement(database_, fmt::format("UPDATE rows SET digest = {} WHERE point = ?", digest_of_columns(grid_)))
      .bind(point)
      .step();
  transaction.commit();
}

std::optional<Point> Store::fastest() const {
  Statement rows(database_,
                 "SELECT point, tokens_per_s_per_gpu, step_time_s FROM rows WHERE state = ? "
                 "AND tokens_per_s_per_gpu IS NOT NULL ORDER BY point");
  rows.bind(to_string(RowState::done));
  std::optional<Point> found;
  RowSpeed best;
  while (rows.step()) {
    const RowSpeed speed{RowState::done, rows.real(1), rows.real(2)};
    if (found && !is_faster(speed, best)) continue;
    found = rows.integer(0);
    best = speed;
  }
  return found;
}

std::vector<Store::Count> Store::inputs_of(const std::string& schema) const {
  std::vector<Count> found;
  Statement all(database_, "SELECT inputs, COUNT(*) FROM " + schema + ".rows GROUP BY inputs");
  while (all.step()) found.push_back({all.text(0), static_cast<int>(all.integer(1))});
  return found;
}

// The text comes from a file and may be anything; such a row is stale.
bool Store::is_stale(const std::string& inputs) {
  const Json json = Json::parse(inputs, nullptr, false);
  if (!json.is_object() || json.value(kProgram, Json()) != Json(program_digest())) {
    changed_.insert("the program");
    return true;
  }
  bool stale = false;
  const Json files = json.value(kFiles, Json::object());
  for (const auto& [name, then] : files.items()) {
    const auto [now, is_new] = digests_.try_emplace(name);
    if (is_new) now->second = digest_now(name);
    if (then == Json(now->second)) continue;
    changed_.insert(name);
    stale = true;
  }
  return stale;
}

void Store::drop_stale() {
  for (const Count& count : inputs_of("main")) {
    if (!is_stale(count.inputs)) continue;
    Statement(database_, "DELETE FROM rows WHERE inputs = ?").bind(count.inputs).step();
    dropped_ += count.rows;
  }
  Statement(database_, "DELETE FROM rows WHERE digest IS NOT " + digest_of_columns(grid_)).step();
  note_damaged(database_.changes());
  dropped_ += database_.changes();
}

void Store::note_damaged(int rows) {
  if (rows > 0) changed_.insert("the stored row");
}

Store::Merged Store::merge(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    throw InputError({"command line", "--merge", "no such store", path, ""});
  std::error_code none;
  if (std::filesystem::equivalent(path, path_, none)) return {0, 0, true};
  Merged merged;
  database_.attach(path, "other");
  database_.require_intact("other", path);
  require_store(database_, "other", path, identity_, grid_, "a store of this sweep");
  for (const Count& count : inputs_of("other")) {
    if (is_stale(count.inputs)) {
      merged.stale += count.rows;
      continue;
    }
    Statement intact(database_, "SELECT COUNT(*) FROM other.rows WHERE inputs = ? AND digest IS " +
                                    digest_of_columns(grid_));
    const int damaged =
        count.rows - (intact.bind(count.inputs).step() ? static_cast<int>(intact.integer(0)) : 0);
    note_damaged(damaged);
    merged.stale += damaged;
    Statement(database_,
              "INSERT OR REPLACE INTO main.rows SELECT * FROM other.rows "
              "WHERE inputs = ? AND point NOT IN (SELECT point FROM main.rows WHERE state <> 'failed') "
              "AND digest IS " +
                  digest_of_columns(grid_))
        .bind(count.inputs)
        .step();
    merged.taken += database_.changes();
  }
  database_.detach("other");
  return merged;
}

void Store::each(const std::function<void(Point, const Row&)>& visit) const {
  Statement rows(database_, "SELECT point, state, reason, report FROM rows ORDER BY point");
  try {
    while (rows.step()) visit(rows.integer(0), parse_row(path_, rows.integer(0), rows));
  } catch (const nlohmann::json::exception& error) {
    throw InputError({path_, fmt::format("/rows/{}", rows.integer(0)),
                      "its report lacks a field or has one of another type", error.what(),
                      "sweep again without --resume or into another --store"});
  }
}

}  // namespace rehearse
