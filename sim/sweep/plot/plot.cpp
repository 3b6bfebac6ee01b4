#include "sweep/plot/plot.h"

#include <algorithm>

#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

constexpr std::size_t kMaxBars = 24;
constexpr std::size_t kMaxCurves = 8;

bool batch_grows_with_gpus(const PlotRows& rows) {
  double share = 0;
  for (const PlotRow& row : rows.rows) {
    if (!row.has_report) continue;
    const double own = row.global_batch / row.gpus;
    if (share > 0 && std::abs(own / share - 1) > 1e-9) return false;
    share = own;
  }
  return share > 0;
}

bool gpus_vary(const PlotRows& rows) {
  double gpus = 0;
  for (const PlotRow& row : rows.rows) {
    if (!row.has_report) continue;
    if (gpus > 0 && row.gpus != gpus) return true;
    gpus = row.gpus;
  }
  return false;
}

bool has_bubble(const PlotRows& rows) {
  return std::ranges::any_of(rows.rows, [](const PlotRow& row) { return row.ideal_bubble > 0; });
}

void require(bool holds, const char* rule, PlotKind kind, const char* nearest) {
  if (!holds) throw InputError({"command line", "--plot", rule, "--plot " + to_string(kind), nearest});
}

}  // namespace

std::string to_string(PlotKind kind) {
  switch (kind) {
    case PlotKind::bubble:
      return "bubble";
    case PlotKind::step_time:
      return "step-time";
    case PlotKind::throughput:
      return "throughput";
    case PlotKind::memory:
      return "memory";
    case PlotKind::strong_scaling:
      return "strong-scaling";
    case PlotKind::weak_scaling:
      return "weak-scaling";
    case PlotKind::heatmap:
      return "heatmap";
    case PlotKind::pareto:
      return "pareto";
    case PlotKind::breakdown:
      return "breakdown";
    case PlotKind::traffic:
      return "traffic";
  }
  return "";
}

const std::vector<PlotKind>& plot_kinds() {
  static const std::vector<PlotKind> kinds = {
      PlotKind::bubble,         PlotKind::step_time,    PlotKind::throughput, PlotKind::memory,
      PlotKind::strong_scaling, PlotKind::weak_scaling, PlotKind::heatmap,    PlotKind::pareto,
      PlotKind::breakdown,      PlotKind::traffic};
  return kinds;
}

PlotKind choose_plot(const Grid& grid, const PlotRows& rows) {
  if (field_at(grid, "/gpus") >= 0 || (field_at(grid, "/plan/dp") >= 0 && gpus_vary(rows)))
    return batch_grows_with_gpus(rows) ? PlotKind::weak_scaling : PlotKind::strong_scaling;
  std::size_t numbers = 0, curves = 1;
  for (const SweptField& field : grid.fields) {
    const bool numeric = axis_of(field).numeric;
    numbers += numeric ? 1 : 0;
    if (!numeric) curves *= field.values.size();
  }
  const int batch = field_at(grid, "/plan/global_batch");
  const std::size_t others =
      batch < 0 ? 0 : rows.rows.size() / grid.fields[static_cast<std::size_t>(batch)].values.size();
  if (batch >= 0 && others <= kMaxCurves && has_bubble(rows)) return PlotKind::bubble;
  if (numbers == 1 && curves <= kMaxCurves) return PlotKind::step_time;
  if (grid.fields.size() == 2 && numbers == 2) return PlotKind::heatmap;
  if (numbers == 0 && rows.rows.size() <= kMaxBars) return PlotKind::breakdown;
  return PlotKind::pareto;
}

void require_fields(const Grid& grid, std::optional<PlotKind> asked) {
  if (grid.fields.empty())
    throw InputError({"command line", "--svg", "a plot needs a flag with several values", "nothing varies",
                      "--gbs 64,128,256"});
  if (!asked) return;
  const PlotKind kind = *asked;
  const auto numeric = [](const SweptField& field) { return axis_of(field).numeric; };
  const bool has_number = std::ranges::any_of(grid.fields, numeric);
  const bool scales = field_at(grid, "/gpus") >= 0 || field_at(grid, "/plan/dp") >= 0;
  const bool has_batch =
      field_at(grid, "/plan/global_batch") >= 0 || field_at(grid, "/plan/micro_batch") >= 0;
  switch (kind) {
    case PlotKind::bubble:
      return require(has_batch, "needs microbatches that vary", kind, "--gbs 64,128,256");
    case PlotKind::step_time:
    case PlotKind::throughput:
    case PlotKind::memory:
      return require(has_number, "needs a field of numbers that varies", kind, "--plot breakdown");
    case PlotKind::strong_scaling:
    case PlotKind::weak_scaling:
      return require(scales, "needs GPUs that vary", kind, "--gpus 64:1024:*2");
    case PlotKind::heatmap:
      return require(grid.fields.size() >= 2, "needs two fields that vary", kind, "--plot step-time");
    case PlotKind::pareto:
    case PlotKind::breakdown:
    case PlotKind::traffic:
      return;
  }
}

std::string draw_plot(const Grid& grid, const PlotRows& rows, std::optional<PlotKind> kind) {
  const PlotKind chosen = kind.value_or(choose_plot(grid, rows));
  require_fields(grid, chosen);
  switch (chosen) {
    case PlotKind::heatmap:
      return draw_heat(grid, rows);
    case PlotKind::pareto:
      return draw_front(grid, rows);
    case PlotKind::breakdown:
      return draw_breakdown(grid, rows);
    case PlotKind::traffic:
      return draw_traffic(grid, rows);
    default:
      return draw_chart(make_curves(grid, rows, chosen));
  }
}

}  // namespace rehearse::plot
