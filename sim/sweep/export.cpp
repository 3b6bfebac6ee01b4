#include "sweep/export.h"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace rehearse {

namespace {

Json line_of(Point point, const Row& row, const Grid& grid, std::optional<Point> fastest) {
  Json line = Json::object();
  const std::vector<Json> values = grid.values_at(point);
  for (std::size_t i = 0; i < values.size(); ++i) line[grid.fields[i].name] = values[i];
  line["state"] = to_string(row.state);
  line["reason"] = row.reason;
  if (fastest) line["fastest"] = point == *fastest;
  if (!row.report.is_object()) return line;
  for (const auto& [key, value] : row.report.items())
    line[line.contains(key) ? "report_" + key : key] = value;
  return line;
}

using Cells = std::vector<std::pair<std::string, std::string>>;  // column, text

// A text that a spreadsheet would treat as a formula gets a ' before it, which spreadsheets do not show.
std::string as_text(const std::string& text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos
             ? "'" + text
             : text;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? as_text(value.get<std::string>())
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void flatten(const Json& object, const std::string& prefix, Cells& cells) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", cells);
    } else if (!value.is_array()) {
      cells.emplace_back(prefix + key, text_of(value));
    }
  }
}

// Keeps swept lists (--layers-per-stage), as they distinguish the rows.
Cells cells_of(const Json& line, const Grid& grid) {
  Cells cells;
  Json rest = line;
  for (const SweptField& field : grid.fields) {
    cells.emplace_back(field.name, text_of(line.at(field.name)));
    rest.erase(field.name);
  }
  flatten(rest, "", cells);
  return cells;
}

void write_cell(std::ostream& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out << text;
    return;
  }
  out << '"';
  for (const char letter : text) out << (letter == '"' ? "\"\"" : std::string(1, letter));
  out << '"';
}

void write_record(std::ostream& out, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out << ',';
    write_cell(out, cells[i]);
  }
  out << "\r\n";
}

}  // namespace

void write_jsonl(std::ostream& out, const Store& store, const Grid& grid) {
  const std::optional<Point> fastest = store.fastest();
  store.each([&](Point point, const Row& row) {
    out << line_of(point, row, grid, fastest).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  });
}

void write_csv(std::ostream& out, const Store& store, const Grid& grid) {
  const std::optional<Point> fastest = store.fastest();
  std::map<std::string, std::size_t> index;
  std::vector<std::string> columns;
  store.each([&](Point point, const Row& row) {
    for (const auto& [column, text] : cells_of(line_of(point, row, grid, fastest), grid))
      if (index.emplace(column, columns.size()).second) columns.push_back(column);
  });
  write_record(out, columns);
  store.each([&](Point point, const Row& row) {
    std::vector<std::string> record(columns.size());
    for (const auto& [column, text] : cells_of(line_of(point, row, grid, fastest), grid))
      record[index.at(column)] = text;
    write_record(out, record);
  });
}

}  // namespace rehearse
