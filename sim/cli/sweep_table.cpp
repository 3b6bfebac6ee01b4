#include "cli/sweep_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/quantity.h"
#include "memory/verdict.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestReason = 120;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

double figure(const Row& row, const char* pointer) {
  return row.report.at(Json::json_pointer(pointer)).get<double>();
}

// CSV and JSON lines contain the whole reason.
std::string shortened(const std::string& text) {
  return text.size() <= kLongestReason ? text : text.substr(0, kLongestReason - 3) + "...";
}

using Line = std::vector<std::string>;

// Fits, but not with headroom and fragmentation.
bool is_tight(const Row& row) {
  return row.report.at("memory").value("verdict", "") == to_string(Verdict::tight);
}

constexpr const char* kExecuted = "executed_step_time_s";

// Executed rows also show the measured values.
bool is_executed(const Store& store) {
  bool found = false;
  store.each(
      [&](Point, const Row& row) { found |= row.report.is_object() && row.report.contains(kExecuted); });
  return found;
}

void add_executed(const Row& row, Line& line) {
  if (!row.report.is_object() || !row.report.contains(kExecuted)) return line.resize(line.size() + 4);
  line.push_back(fmt::format("{:.4g} s", figure(row, "/executed_step_time_s")));
  line.push_back(fmt::format("{:+.1f} %", 100 * figure(row, "/step_time_error")));
  line.push_back(fmt::format("{:.1f} %", 100 * figure(row, "/executed_bubble_fraction/mean")));
  const double points = figure(row, "/bubble_fraction/mean") - figure(row, "/executed_bubble_fraction/mean");
  line.push_back(fmt::format("{:+.1f} points", 100 * points));
}

Line line_of(Point point, const Row& row, const Grid& grid, bool executed) {
  Line line;
  for (const Json& value : grid.values_at(point)) line.push_back(text_of(value));
  if (row.report.is_object()) {
    line.push_back(fmt::format("{:.4g} s", figure(row, "/step_time_s")));
    line.push_back(fmt::format("{:.0f}", figure(row, "/tokens_per_s_per_gpu")));
    line.push_back(fmt::format("{:.1f} %", 100 * figure(row, "/mfu")));
    line.push_back(fmt::format("{:.1f} %", 100 * figure(row, "/bubble_fraction/mean")));
    line.push_back(format_bytes(figure(row, "/memory/needed_bytes")));
  } else {
    line.resize(line.size() + 5);
  }
  if (executed) add_executed(row, line);
  line.push_back(row.state == RowState::done ? "" : shortened(to_string(row.state) + ": " + row.reason));
  if (row.state == RowState::done && is_tight(row)) line.back() = "tight";
  return line;
}

std::string aligned(const std::vector<Line>& lines) {
  std::vector<std::size_t> width(lines.front().size(), 0);
  for (const Line& line : lines)
    for (std::size_t i = 0; i + 1 < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) row += fmt::format("{:>{}}  ", line[i], width[i]);
    row += line.back();
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace

std::string sweep_table(const Store& store, const Grid& grid) {
  Line head;
  for (const SweptField& field : grid.fields) head.push_back(field.name);
  for (const char* column : {"step time", "tokens/s/GPU", "MFU", "idle", "total memory"})
    head.emplace_back(column);
  const bool executed = is_executed(store);
  if (executed)
    for (const char* column : {"executed", "error", "idle", "error"}) head.emplace_back(column);
  head.emplace_back();
  std::vector<Line> lines = {head};
  const std::optional<Point> fastest = store.fastest();
  store.each([&](Point point, const Row& row) {
    lines.push_back(line_of(point, row, grid, executed));
    if (point == fastest) lines.back().back() = lines.back().back().empty() ? "fastest" : "fastest; tight";
  });
  return aligned(lines);
}

}  // namespace rehearse
