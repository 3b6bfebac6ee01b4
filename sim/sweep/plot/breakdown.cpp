#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/quantity.h"
#include "draw/axis.h"
#include "draw/bars.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

constexpr std::size_t kMax = 40;

// All rows if there is room, else those with a report, fastest first.
std::vector<const PlotRow*> shown(const std::vector<PlotRow>& rows) {
  std::vector<const PlotRow*> chosen;
  for (const PlotRow& row : rows) chosen.push_back(&row);
  if (chosen.size() <= kMax) return chosen;
  std::erase_if(chosen, [](const PlotRow* row) { return !row->has_report; });
  std::ranges::stable_sort(
      chosen, [](const PlotRow* a, const PlotRow* b) { return is_faster(a->speed(), b->speed()); });
  if (chosen.size() > kMax) chosen.resize(kMax);
  return chosen;
}

std::string short_of(const PlotRow& row, const std::string& total) {
  if (!row.has_report) return to_string(row.state);
  return row.fits() ? total : total + ", does not fit";
}

// One bar a row, of the parts that `values_of` gives, in units of `unit`.
template <typename Parts, typename ValuesOf, typename TotalOf>
std::string draw_rows(StackedBars bars, const Parts& parts, const Grid& grid, const PlotRows& rows,
                      double unit, const ValuesOf& values_of, const TotalOf& total_of) {
  bars.held = rows.held;
  for (const NamedPart& part : parts) bars.parts.push_back({part.name, part.colour});
  for (const PlotRow* row : shown(rows.rows)) {
    Bar& bar = bars.bars.emplace_back();
    bar.name = values_in_words(row->values, grid, {});
    bar.hint = hint_of(*row, grid);
    bar.total = short_of(*row, total_of(*row));
    bar.fits = row->fits();
    if (!row->has_report) continue;
    for (const double value : values_of(*row)) bar.parts.push_back(value / unit);
  }
  if (bars.bars.size() < rows.rows.size())
    bars.note = fmt::format("The fastest {} of {} rows are drawn; illegal rows are not.", bars.bars.size(),
                            rows.rows.size());
  return draw_bars(bars);
}

double sent(const PlotRow& row) {
  return std::accumulate(row.sent_bytes.begin(), row.sent_bytes.end(), 0.0);
}

}  // namespace

std::string draw_breakdown(const Grid& grid, const PlotRows& rows) {
  double longest_s = 0;
  for (const PlotRow& row : rows.rows) longest_s = std::max(longest_s, row.step_time_s);
  const svg::TimeUnit unit = svg::unit_for(longest_s);
  StackedBars bars;
  bars.title = "Where the step goes";
  bars.label = fmt::format("time on the critical path through all ranks ({})", unit.name);
  return draw_rows(
      std::move(bars), kTimeParts, grid, rows, unit.seconds, [](const PlotRow& row) { return row.time_s; },
      [](const PlotRow& row) { return format_seconds(row.step_time_s); });
}

std::string draw_traffic(const Grid& grid, const PlotRows& rows) {
  StackedBars bars;
  bars.title = "Traffic of one GPU, by class of link";
  bars.label = "sent per iteration, collectives counted as rings (GB)";
  return draw_rows(
      std::move(bars), kLinkClasses, grid, rows, 1e9, [](const PlotRow& row) { return row.sent_bytes; },
      [](const PlotRow& row) {
        return fmt::format("{}, {} over NICs", format_bytes(sent(row)), format_bytes(row.sent_bytes[1]));
      });
}

}  // namespace rehearse::plot
