#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "draw/axis.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {

namespace {

bool is_scaling(PlotKind kind) {
  return kind == PlotKind::strong_scaling || kind == PlotKind::weak_scaling;
}

// The field along the x axis: the one that the kind of plot needs, else the numeric field with most values.
std::size_t running_field(const Grid& grid, PlotKind kind) {
  std::vector<const char*> first;
  if (kind == PlotKind::bubble) first = {"/plan/global_batch", "/plan/micro_batch"};
  if (is_scaling(kind)) first = {"/gpus", "/plan/dp"};
  for (const char* pointer : first)
    if (field_at(grid, pointer) >= 0) return static_cast<std::size_t>(field_at(grid, pointer));
  std::size_t chosen = 0, most = 0;
  for (std::size_t i = 0; i < grid.fields.size(); ++i) {
    if (!axis_of(grid.fields[i]).numeric || grid.fields[i].values.size() < most) continue;
    chosen = i;
    most = grid.fields[i].values.size();
  }
  return chosen;
}

class Curves {
 public:
  Curves(const Grid& grid, const PlotRows& rows, PlotKind kind)
      : grid_(grid),
        rows_(rows),
        kind_(kind),
        running_(running_field(grid, kind)),
        axis_(axis_of(grid.fields[running_])) {
    double slowest_s = 0;
    for (const PlotRow& row : rows.rows) slowest_s = std::max(slowest_s, row.step_time_s);
    unit_ = svg::unit_for(slowest_s);
  }

  Chart chart() {
    Chart chart;
    chart.held = rows_.held;
    label(chart);
    for (const PlotRow& row : rows_.rows) add(row, chart);
    for (auto& [key, curve] : curves_) {
      std::ranges::stable_sort(curve.measured.points, {}, &ChartPoint::x);
      std::ranges::stable_sort(curve.ideal.points, {}, &ChartPoint::x);
      if (is_scaling(kind_)) add_flat(curve);
    }
    take_in_order(chart);
    x_marks(chart);
    if (kind_ == PlotKind::memory) add_capacity(chart);
    chart.note = note();
    return chart;
  }

 private:
  struct Curve {
    std::size_t order = 0;
    ChartSeries measured, ideal, executed;
  };

  bool has_ideal() const { return kind_ == PlotKind::bubble || is_scaling(kind_); }
  // Bubbles are drawn against the number of microbatches, which follows from the batch.
  bool by_microbatches() const { return kind_ == PlotKind::bubble; }

  void label(Chart& chart) const {
    const std::string along = by_microbatches() ? "microbatches" : axis_.label;
    chart.x_label = by_microbatches() ? "microbatches per replica and iteration" : axis_.label;
    chart.logarithmic_x = by_microbatches() || axis_.logarithmic;
    switch (kind_) {
      case PlotKind::bubble:
        chart.title = "Idle compute against microbatches";
        chart.y_label = "bubble and waiting (% of the iteration)";
        break;
      case PlotKind::step_time:
        chart.title = "Step time against " + along;
        chart.y_label = fmt::format("step time ({})", unit_.name);
        break;
      case PlotKind::memory:
        chart.title = "Memory of the fullest rank against " + along;
        chart.y_label = "memory of one GPU (GB)";
        break;
      case PlotKind::strong_scaling:
        chart.title = "Strong scaling: the same batch on more GPUs";
        chart.y_label = "tokens/s/GPU";
        break;
      case PlotKind::weak_scaling:
        chart.title = "Weak scaling: the batch grows with the GPUs";
        chart.y_label = "tokens/s/GPU";
        break;
      default:
        chart.title = "Throughput against " + along;
        chart.y_label = "tokens/s/GPU";
    }
    if (is_scaling(kind_)) chart.x_label = "GPUs";
  }

  double y(const PlotRow& row) const {
    switch (kind_) {
      case PlotKind::bubble:
        return 100 * row.bubble;
      case PlotKind::step_time:
        return row.step_time_s / unit_.seconds;
      case PlotKind::memory:
        return row.needed_bytes / 1e9;
      default:
        return row.tokens_per_s_per_gpu;
    }
  }

  bool shows_executed() const { return kind_ == PlotKind::bubble || kind_ == PlotKind::step_time; }
  double executed_y(const PlotRow& row) const {
    return kind_ == PlotKind::bubble ? 100 * row.executed_bubble : row.executed_step_time_s / unit_.seconds;
  }

  double own_x(const PlotRow& row) const {
    if (by_microbatches()) return row.microbatches;
    if (is_scaling(kind_)) return row.gpus;
    return swept_x(row);
  }

  double swept_x(const PlotRow& row) const {
    const auto& values = grid_.fields[running_].values;
    return axis_
        .at[static_cast<std::size_t>(std::ranges::find(values, row.values[running_]) - values.begin())];
  }

  // x of a row without a result: that of the rows with the same value, if they all share one.
  std::optional<double> x_of_refused(const PlotRow& refused) const {
    if (!by_microbatches() && !is_scaling(kind_)) return swept_x(refused);
    if (is_scaling(kind_) && grid_.fields[running_].pointer == "/gpus") return swept_x(refused);
    std::optional<double> found;
    for (const PlotRow& row : rows_.rows) {
      if (!row.has_report || row.values[running_] != refused.values[running_]) continue;
      if (found && *found != own_x(row)) return std::nullopt;
      found = own_x(row);
    }
    return found;
  }

  // All other fields distinguish curves; weak scaling also uses the batch of a GPU.
  std::string key_of(const PlotRow& row) const {
    std::set<int> but = {static_cast<int>(running_)};
    const int batch_field = field_at(grid_, "/plan/global_batch");
    if (kind_ != PlotKind::weak_scaling || batch_field < 0) return values_in_words(row.values, grid_, but);
    but.insert(batch_field);
    const std::string words = values_in_words(row.values, grid_, but);
    const std::string batch = fmt::format("{:.4g} sequences per GPU", row.global_batch / row.gpus);
    return words.empty() ? batch : words + ", " + batch;
  }

  void add(const PlotRow& row, Chart& chart) {
    if (!row.has_report) {
      if (const std::optional<double> x = x_of_refused(row))
        chart.refused.push_back({*x, hint_of(row, grid_)});
      else
        unplaced_.push_back(values_in_words(row.values, grid_, {}));
      return;
    }
    const std::string key = key_of(row);
    const auto [found, is_new] = curves_.try_emplace(key);
    Curve& curve = found->second;
    if (is_new) {
      curve.order = curves_.size() - 1;
      curve.measured = {key.empty() ? "simulated" : key, {}, curve.order, false, true};
      curve.ideal = {"", {}, curve.order, true, true};
    }
    curve.measured.points.push_back({own_x(row), y(row), row.fits(), hint_of(row, grid_)});
    if (row.executed_step_time_s > 0 && shows_executed())
      curve.executed.points.push_back(
          {own_x(row), executed_y(row), true, hint_of(row, grid_) + ", executed"});
    if (by_microbatches()) curve.ideal.points.push_back({own_x(row), 100 * row.ideal_bubble, true, ""});
  }

  // Ideal scaling: throughput a GPU is constant.
  static void add_flat(Curve& curve) {
    const ChartPoint& first = curve.measured.points.front();
    if (curve.measured.points.size() < 2) return;
    curve.ideal.points = {{first.x, first.y, true, ""}, {curve.measured.points.back().x, first.y, true, ""}};
  }

  void take_in_order(Chart& chart) {
    std::vector<Curve> ordered(curves_.size());
    for (auto& [key, curve] : curves_) ordered[curve.order] = std::move(curve);
    if (has_ideal())
      for (Curve& curve : ordered) chart.series.push_back(std::move(curve.ideal));
    if (has_ideal() && !chart.series.empty())
      chart.series.front().name = kind_ == PlotKind::bubble ? "closed form" : "no loss";
    for (Curve& curve : ordered) {
      curve.executed.name = curve.measured.name + ", executed";
      curve.executed.style = ordered.size() + curve.order;
      curve.executed.joined = false;
      chart.series.push_back(std::move(curve.measured));
    }
    for (Curve& curve : ordered)
      if (!curve.executed.points.empty()) chart.series.push_back(std::move(curve.executed));
    if (chart.series.empty()) chart.series.push_back({"", {}, 0, false, true});
  }

  void x_marks(Chart& chart) const {
    constexpr std::size_t kMaxMarks = 24;
    std::map<double, std::string> marks;
    if (by_microbatches() || is_scaling(kind_)) {
      for (const PlotRow& row : rows_.rows)
        if (row.has_report) marks[own_x(row)] = fmt::format("{:g}", own_x(row));
    }
    if (!by_microbatches() && !(is_scaling(kind_) && grid_.fields[running_].pointer != "/gpus"))
      for (std::size_t i = 0; i < axis_.at.size(); ++i) marks[axis_.at[i]] = axis_.texts[i];
    if (marks.size() > kMaxMarks && !chart.logarithmic_x) return;
    for (const auto& [at, text] : marks) chart.x_ticks.push_back({at, text});
  }

  void add_capacity(Chart& chart) const {
    double capacity = 0;
    for (const PlotRow& row : rows_.rows) {
      if (!row.has_report) continue;
      if (capacity > 0 && row.capacity_bytes != capacity) return;
      capacity = row.capacity_bytes;
    }
    if (capacity > 0) chart.limit = ChartTick{capacity / 1e9, "memory of the GPU"};
  }

  std::string note() const {
    std::string words;
    if (kind_ == PlotKind::bubble)
      words = "Dashed: the closed form of the bubble, for equal stages and no communication time.";
    if (is_scaling(kind_)) words = "Dashed: ideal scaling from the fewest GPUs.";
    if (!unplaced_.empty())
      words +=
          fmt::format("{}Illegal, not on the axis: {}.", words.empty() ? "" : " ", join(unplaced_, "; "));
    return words;
  }

  const Grid& grid_;
  const PlotRows& rows_;
  PlotKind kind_;
  std::size_t running_;
  FieldAxis axis_;
  svg::TimeUnit unit_;
  std::map<std::string, Curve> curves_;
  std::vector<std::string> unplaced_;
};

}  // namespace

Chart make_curves(const Grid& grid, const PlotRows& rows, PlotKind kind) {
  return Curves(grid, rows, kind).chart();
}

}  // namespace rehearse::plot
