#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "result/svg/axis.h"
#include "result/svg/bars.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

constexpr std::size_t kMost = 40;

// All where there is room, else those with a report, the fastest first.
std::vector<const PlotRow*> shown(const std::vector<PlotRow>& rows) {
  std::vector<const PlotRow*> chosen;
  for (const PlotRow& row : rows) chosen.push_back(&row);
  if (chosen.size() <= kMost) return chosen;
  std::erase_if(chosen, [](const PlotRow* row) { return !row->has_report; });
  std::ranges::stable_sort(chosen, {}, &PlotRow::step_time_s);
  if (chosen.size() > kMost) chosen.resize(kMost);
  return chosen;
}

std::string total_of(const PlotRow& row) {
  if (!row.has_report) return to_string(row.state);
  return format_seconds(row.step_time_s) + (row.fits() ? "" : ", does not fit");
}

}  // namespace

std::string draw_breakdown(const Grid& grid, const PlotRows& rows) {
  double longest_s = 0;
  for (const PlotRow& row : rows.rows) longest_s = std::max(longest_s, row.step_time_s);
  const svg::TimeUnit unit = svg::unit_for(longest_s);
  StackedBars bars{
      "Where the step goes", rows.held, fmt::format("time of the critical rank ({})", unit.name), {}, {}, ""};
  for (const TimePart& part : kTimeParts) bars.parts.push_back({part.name, part.colour});
  for (const PlotRow* row : shown(rows.rows)) {
    Bar& bar = bars.bars.emplace_back();
    bar.name = values_in_words(row->values, grid, {});
    bar.hint = hint_of(*row, grid);
    bar.total = total_of(*row);
    bar.fits = row->fits();
    if (!row->has_report) continue;
    for (const double seconds : row->time_s) bar.parts.push_back(seconds / unit.seconds);
  }
  if (bars.bars.size() < rows.rows.size())
    bars.note =
        fmt::format("The fastest {} of {} rows are drawn; rows that are illegal are among the others.",
                    bars.bars.size(), rows.rows.size());
  return draw_bars(bars);
}

}  // namespace rehearse::plot
