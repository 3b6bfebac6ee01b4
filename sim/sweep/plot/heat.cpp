#include <fmt/core.h>

#include <algorithm>

#include "draw/heatmap.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

std::size_t index_of(const SweptField& field, const Json& value) {
  return static_cast<std::size_t>(std::ranges::find(field.values, value) - field.values.begin());
}

HeatCell cell_of(const PlotRow& row, const Grid& grid) {
  HeatCell cell;
  cell.hint = hint_of(row, grid);
  cell.fits = row.fits();
  // A row that failed in execution has a report, but no rank among the others.
  const bool has_result = row.has_report && row.state != RowState::failed;
  cell.label = has_result                       ? fmt::format("{:.0f}", row.tokens_per_s_per_gpu)
               : row.state == RowState::illegal ? "illegal"
                                                : "none";
  if (has_result) cell.value = row.tokens_per_s_per_gpu;
  return cell;
}

// The two fields with the most values, numbers before names; the later one is x.
std::pair<std::size_t, std::size_t> axes_of(const Grid& grid) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < grid.fields.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const bool a_numeric = axis_of(grid.fields[a]).numeric, b_numeric = axis_of(grid.fields[b]).numeric;
    if (a_numeric != b_numeric) return a_numeric;
    return grid.fields[a].values.size() > grid.fields[b].values.size();
  });
  return {std::max(order[0], order[1]), std::min(order[0], order[1])};
}

std::string note_of(const Grid& grid, std::size_t others) {
  std::string note =
      "Framed: the fastest that fits. Hatched: does not fit in memory. Grey: illegal, or without a result.";
  if (others > 1)
    note += fmt::format(" Each cell is the best of {} combinations of the other {} field{}.", others,
                        grid.fields.size() - 2, grid.fields.size() == 3 ? "" : "s");
  return note;
}

}  // namespace

std::string draw_heat(const Grid& grid, const PlotRows& rows) {
  const auto [x, y] = axes_of(grid);
  const SweptField &across = grid.fields[x], &up = grid.fields[y];
  const FieldAxis x_axis = axis_of(across), y_axis = axis_of(up);
  std::vector<std::vector<const PlotRow*>> best(up.values.size(),
                                                std::vector<const PlotRow*>(across.values.size()));
  for (const PlotRow& row : rows.rows) {
    const PlotRow*& cell = best[index_of(up, row.values[y])][index_of(across, row.values[x])];
    if (cell == nullptr || is_faster(row.speed(), cell->speed())) cell = &row;
  }
  Heatmap map{"Throughput against " + x_axis.label + " and " + y_axis.label,
              rows.held,
              x_axis.label,
              y_axis.label,
              "tokens/s/GPU",
              x_axis.texts,
              y_axis.texts,
              {},
              ""};
  for (const auto& line : best) {
    std::vector<HeatCell>& cells = map.cells.emplace_back();
    for (const PlotRow* row : line)
      cells.push_back(row == nullptr ? HeatCell{{}, true, "not run", "not run yet"} : cell_of(*row, grid));
  }
  map.note = note_of(grid, rows.rows.size() / (across.values.size() * up.values.size()));
  return draw_heatmap(map);
}

}  // namespace rehearse::plot
