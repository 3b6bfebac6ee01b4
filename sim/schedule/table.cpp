#include <fmt/core.h>

#include <algorithm>

#include "schedule/text.h"

namespace rehearse {

namespace {

constexpr std::size_t kMargin = 8;  // columns shown on either side of the marks

std::vector<std::string> compute_cells(const RankOps& ops, int rank,
                                       const std::vector<std::pair<int, int>>& marked) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].stream != Stream::compute) continue;
    const bool mark = std::ranges::count(marked, std::pair(rank, static_cast<int>(i))) > 0;
    cells.push_back(to_string(ops[i]) + (mark ? "<-" : ""));
  }
  return cells;
}

// First column to show and one past the last.
std::pair<std::size_t, std::size_t> window(const std::vector<std::vector<std::string>>& rows) {
  std::size_t columns = 0, first = columns - 1, last = 0;
  for (const auto& row : rows) {
    columns = std::max(columns, row.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!row[c].ends_with("<-")) continue;
      first = std::min(first, c);
      last = std::max(last, c);
    }
  }
  if (first > last) return {0, columns};
  return {first > kMargin ? first - kMargin : 0, std::min(columns, last + kMargin + 1)};
}

}  // namespace

std::string compute_table(const Schedule& schedule, const std::vector<std::pair<int, int>>& marked) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    rows.push_back(compute_cells(schedule.ranks[rank], static_cast<int>(rank), marked));
  const auto [first, last] = window(rows);

  const std::size_t label = std::to_string(rows.size()).size();
  std::vector<std::string> lines(rows.size());
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    lines[rank] = fmt::format("rank {:>{}}:{}", rank, label, first > 0 ? " ..." : "");
  for (std::size_t c = first; c < last; ++c) {
    std::size_t width = 0;
    for (const auto& row : rows)
      if (c < row.size()) width = std::max(width, row[c].size());
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      lines[rank] += fmt::format(" {:<{}}", c < rows[rank].size() ? rows[rank][c] : "", width);
  }
  std::string table;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    if (last < rows[rank].size()) lines[rank] += " ...";
    lines[rank].erase(lines[rank].find_last_not_of(' ') + 1);
    table += lines[rank] + "\n";
  }
  return table;
}

}  // namespace rehearse
