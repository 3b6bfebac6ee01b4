#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "draw/axis.h"
#include "draw/chart.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

constexpr std::size_t kMaxColours = 6;
constexpr double kFarthest = 1.5;  // memories of a GPU; the note counts rows that need more
constexpr double kCells = 300;     // along either axis; points that share one are drawn once

// The field that colours the points: one with few values, preferably names. -1: none.
int colouring_field(const Grid& grid) {
  int chosen = -1;
  bool is_name = false;
  for (std::size_t i = 0; i < grid.fields.size(); ++i) {
    const bool name = !axis_of(grid.fields[i]).numeric;
    if (grid.fields[i].values.size() > kMaxColours || (chosen >= 0 && (is_name || !name))) continue;
    chosen = static_cast<int>(i);
    is_name = name;
  }
  return chosen;
}

std::size_t colour_of(const PlotRow& row, const Grid& grid, int field) {
  if (field < 0) return 0;
  const auto i = static_cast<std::size_t>(field);
  return static_cast<std::size_t>(std::ranges::find(grid.fields[i].values, row.values[i]) -
                                  grid.fields[i].values.begin());
}

// Whether all rows train on the same number of tokens a GPU. Such rows compare by step time, others by GPU
// time a token.
bool same_work(const std::vector<PlotRow>& rows) {
  constexpr double kRounding = 1e-9;
  double first = 0;
  for (const PlotRow& row : rows) {
    const double tokens = row.tokens_per_s_per_gpu * row.step_time_s;
    if (tokens == 0) continue;
    if (first == 0) first = tokens;
    if (std::abs(tokens / first - 1) > kRounding) return false;
  }
  return true;
}

double cost_s(const PlotRow& row, bool same_work) {
  if (same_work) return row.step_time_s;
  return row.tokens_per_s_per_gpu > 0 ? 1 / row.tokens_per_s_per_gpu : 0;
}

bool is_beyond(const PlotRow& row) {
  return row.needed_bytes > kFarthest * row.capacity_bytes;
}

std::string note_of(const std::vector<PlotRow>& rows, std::size_t drawn) {
  std::map<RowState, std::size_t> refused;
  std::size_t with_report = 0, beyond = 0;
  for (const PlotRow& row : rows) {
    with_report += row.has_report ? 1 : 0;
    beyond += row.has_report && is_beyond(row) ? 1 : 0;
    if (!row.has_report) ++refused[row.state];
  }
  std::string note = fmt::format("{} rows with a result", with_report);
  if (beyond > 0)
    note += fmt::format(", {} of them beyond the right edge: they need more than {:g} times the memory",
                        beyond, kFarthest);
  if (drawn + beyond < with_report)
    note += fmt::format(", {} on top of others and not drawn", with_report - drawn - beyond);
  for (const auto& [state, count] : refused) note += fmt::format("; {} {}", count, to_string(state));
  return note + ". The line is the Pareto front of both axes.";
}

class Front {
 public:
  Front(const Grid& grid, const PlotRows& rows)
      : grid_(grid), rows_(rows), field_(colouring_field(grid)), same_work_(same_work(rows.rows)) {
    for (const PlotRow& row : rows.rows) {
      if (is_beyond(row)) continue;
      slowest_s_ = std::max(slowest_s_, cost_s(row, same_work_));
      largest_ = std::max(largest_, row.needed_bytes);
    }
    unit_ = svg::unit_for(slowest_s_);
  }

  Chart chart() {
    Chart chart;
    const std::string time = same_work_ ? "step time" : "GPU time per token";
    chart.title = (same_work_ ? "Step time" : "GPU time per token") +
                  std::string(" against memory of the fullest rank");
    chart.held = rows_.held;
    chart.x_label = "memory of one GPU (GB)";
    chart.y_label = fmt::format("{} ({})", time, unit_.name);
    chart.x_from_zero = true;
    const std::size_t drawn = add_clouds(chart);
    ChartSeries& front = chart.series.emplace_back(ChartSeries{"Pareto front", {}, 6, false, true});
    for (const std::size_t i : front_of(rows_.rows)) front.points.push_back(point(rows_.rows[i]));
    add_limit(chart);
    chart.note = note_of(rows_.rows, drawn);
    return chart;
  }

 private:
  ChartPoint point(const PlotRow& row) const {
    return {row.needed_bytes / 1e9, cost_s(row, same_work_) / unit_.seconds, row.fits(), hint_of(row, grid_)};
  }

  std::size_t add_clouds(Chart& chart) const {
    const std::size_t colours = field_ < 0 ? 1 : grid_.fields[static_cast<std::size_t>(field_)].values.size();
    std::vector<ChartSeries> clouds(colours);
    for (std::size_t i = 0; i < colours; ++i) clouds[i] = {"plans", {}, i, false, false};
    std::set<std::tuple<int, int, std::size_t, bool>> taken;
    std::size_t drawn = 0;
    for (const PlotRow& row : rows_.rows) {
      if (!row.has_report || is_beyond(row)) continue;
      const std::size_t colour = colour_of(row, grid_, field_);
      if (field_ >= 0) clouds[colour].name = name_of(row);
      const int column = static_cast<int>(kCells * row.needed_bytes / largest_);
      const int line = static_cast<int>(kCells * cost_s(row, same_work_) / slowest_s_);
      if (!taken.insert({column, line, colour, row.fits()}).second) continue;
      clouds[colour].points.push_back(point(row));
      ++drawn;
    }
    for (ChartSeries& cloud : clouds)
      if (!cloud.points.empty()) chart.series.push_back(std::move(cloud));
    return drawn;
  }

  std::string name_of(const PlotRow& row) const {
    std::set<int> but;
    for (std::size_t i = 0; i < grid_.fields.size(); ++i)
      if (static_cast<int>(i) != field_) but.insert(static_cast<int>(i));
    return values_in_words(row.values, grid_, but);
  }

  void add_limit(Chart& chart) const {
    std::set<double> capacities;
    for (const PlotRow& row : rows_.rows)
      if (row.has_report) capacities.insert(row.capacity_bytes);
    if (capacities.size() == 1)
      chart.vertical_limit = ChartTick{*capacities.begin() / 1e9, "memory of the GPU"};
  }

  const Grid& grid_;
  const PlotRows& rows_;
  int field_;
  bool same_work_;
  double slowest_s_ = 0, largest_ = 0;
  svg::TimeUnit unit_;
};

}  // namespace

std::vector<std::size_t> front_of(const std::vector<PlotRow>& rows) {
  const bool same = same_work(rows);
  std::vector<std::size_t> order, front;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].state == RowState::done && rows[i].has_report) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (rows[a].needed_bytes != rows[b].needed_bytes) return rows[a].needed_bytes < rows[b].needed_bytes;
    return cost_s(rows[a], same) < cost_s(rows[b], same);
  });
  for (const std::size_t i : order)
    if (front.empty() || cost_s(rows[i], same) < cost_s(rows[front.back()], same)) front.push_back(i);
  return front;
}

std::string draw_front(const Grid& grid, const PlotRows& rows) {
  return draw_chart(Front(grid, rows).chart());
}

}  // namespace rehearse::plot
