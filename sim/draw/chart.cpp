#include "draw/chart.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "draw/axis.h"
#include "draw/canvas.h"
#include "draw/markers.h"

namespace rehearse {

namespace {

using namespace svg;

// Pixels.
constexpr double kWhole = 920, kLeft = 78, kLegend = 214, kRight = 30, kTall = 340;
constexpr double kMargin = 24;  // between the ends of the axis and the outermost points
constexpr std::size_t kMaxEntries = 18;

class ChartPicture {
 public:
  explicit ChartPicture(const Chart& chart) : chart_(chart) {
    for (const ChartSeries& series : chart.series)
      for (const ChartPoint& point : series.points) {
        reach(point.x, point.y);
        if (!point.fits && !hollow_) hollow_ = series.style;
      }
    for (const RefusedPoint& point : chart.refused) reach(point.x, 0);
    if (chart.limit) most_y_ = std::max(most_y_, chart.limit->at);
    if (chart.vertical_limit) most_x_ = std::max(most_x_, chart.vertical_limit->at);
    if (chart.x_from_zero) least_x_ = 0;
    most_y_ = most_y_ > 0 ? 1.06 * most_y_ : 1;
    plot_ = kWhole - kLeft - (entries() > 1 ? kLegend : kRight);
  }

  std::string draw() {
    top_ = canvas_.heading(16, kWhole - 32, chart_.title, chart_.held) + 14;
    y_axis();
    x_axis();
    limits();
    for (const ChartSeries& series : chart_.series) curve(series);
    refused();
    if (entries() > 1) legend();
    double y = top_ + kTall + 62;
    for (const std::string& line : wrap(chart_.note, 120)) {
      canvas_.text(16, y, 12, line, Anchor::start, R"( fill="#444")");
      y += 16;
    }
    return canvas_.finish(kWhole, chart_.note.empty() ? y - 8 : y, chart_.title);
  }

 private:
  void reach(double x, double y) {
    least_x_ = empty_ ? x : std::min(least_x_, x);
    most_x_ = empty_ ? x : std::max(most_x_, x);
    most_y_ = std::max(most_y_, y);
    empty_ = false;
  }

  double along(double x) const { return chart_.logarithmic_x ? std::log2(x) : x; }
  double x(double value) const {
    const double least = along(least_x_), most = along(most_x_);
    const double begin = chart_.x_from_zero ? 0 : kMargin;
    if (!(most > least)) return kLeft + plot_ / 2;
    return kLeft + begin + (plot_ - begin - kMargin) * (along(value) - least) / (most - least);
  }
  double y(double value) const { return top_ + kTall * (1 - value / most_y_); }

  std::size_t entries() const {
    std::size_t count = (hollow_ ? 1u : 0u) + (chart_.refused.empty() ? 0u : 1u);
    for (const ChartSeries& series : chart_.series) count += series.name.empty() ? 0u : 1u;
    return count;
  }

  void y_axis() {
    for (const Tick& tick : ticks({0, most_y_, 0, kTall}, {"", 1}, 52)) {
      const double at = top_ + kTall - tick.x;
      canvas_.put(R"(<path d="M{} {}h{}" stroke="{}"/>)", number(kLeft), number(at), number(plot_),
                  tick.x < 0.5 ? "#333" : "#ddd");
      canvas_.text(kLeft - 8, at + 4, 12, tick.label, Anchor::end);
    }
    canvas_.upright_text(20, top_ + kTall / 2, 13, chart_.y_label);
  }

  std::vector<ChartTick> x_ticks() const {
    if (!chart_.x_ticks.empty()) return chart_.x_ticks;
    std::vector<ChartTick> marks;
    const double begin = x(least_x_), end = x(most_x_);
    if (!(end > begin)) return {{least_x_, fmt::format("{:g}", least_x_)}};
    const Window window{least_x_, most_x_, begin, end - begin};
    for (const Tick& tick : ticks(window, {"", 1}, 90))
      marks.push_back({least_x_ + (tick.x - begin) / (end - begin) * (most_x_ - least_x_), tick.label});
    return marks;
  }

  // Labels that would overlap the previous one are omitted.
  void x_axis() {
    double free = 0;
    for (const ChartTick& tick : x_ticks()) {
      const double at = x(tick.at), half = text_width(tick.label, 12) / 2;
      canvas_.put(R"(<path d="M{0} {1}v{2}" stroke="#eee"/><path d="M{0} {3}v5" stroke="#333"/>)", number(at),
                  number(top_), number(kTall), number(top_ + kTall));
      if (at - half < free) continue;
      free = at + half + 4;
      canvas_.text(at, top_ + kTall + 19, 12, tick.label, Anchor::middle);
    }
    canvas_.text(kLeft + plot_ / 2, top_ + kTall + 40, 13, chart_.x_label, Anchor::middle);
  }

  void limits() {
    constexpr const char* kDashes = R"( stroke="#b00020" stroke-dasharray="7 4")";
    if (chart_.limit) {
      const double at = y(chart_.limit->at);
      canvas_.put(R"(<path d="M{} {}h{}"{}/>)", number(kLeft), number(at), number(plot_), kDashes);
      canvas_.text(kLeft + 6, at - 5, 12, chart_.limit->label, Anchor::start, R"( fill="#b00020")");
    }
    if (chart_.vertical_limit) {
      const double at = x(chart_.vertical_limit->at);
      canvas_.put(R"(<path d="M{} {}v{}"{}/>)", number(at), number(top_), number(kTall), kDashes);
      canvas_.text(at + 5, top_ + 13, 12, chart_.vertical_limit->label, Anchor::start, R"( fill="#b00020")");
    }
  }

  void curve(const ChartSeries& series) {
    const char* colour = line_colour(series.style);
    std::string path;
    for (const ChartPoint& point : series.points)
      path += fmt::format("{}{} {}", path.empty() ? "M" : "L", number(x(point.x)), number(y(point.y)));
    if (series.joined && series.points.size() > 1)
      canvas_.put(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{}"{}/>)", path, colour,
                  series.dashed ? "1.4" : "2", series.dashed ? R"( stroke-dasharray="5 4")" : "");
    if (series.dashed) return;
    for (const ChartPoint& point : series.points)
      put_marker(canvas_, x(point.x), y(point.y), series.style, point.fits, point.hint);
  }

  void refused() {
    std::map<double, std::vector<std::string>> hints;
    for (const RefusedPoint& point : chart_.refused) hints[point.x].push_back(point.hint);
    for (const auto& [at, words] : hints) {
      put_cross(canvas_, x(at), top_ + kTall - 9, join(words, "; "));
      if (words.size() > 1)
        canvas_.text(x(at) + 8, top_ + kTall - 5, 11, std::to_string(words.size()), Anchor::start,
                     R"( fill="#b00020")");
    }
  }

  void entry(double& at, const std::string& name) {
    canvas_.text(kLeft + plot_ + 52, at + 4, 12.5, shorten(name, 24));
    at += 21;
  }

  void legend() {
    const double left = kLeft + plot_ + 18;
    double at = top_ + 10;
    std::size_t shown = 0, named = 0;
    for (const ChartSeries& series : chart_.series) {
      if (series.name.empty()) continue;
      ++named;
      if (shown == kMaxEntries) continue;
      ++shown;
      if (series.joined)
        canvas_.put(R"(<path d="M{} {}h26" stroke="{}" stroke-width="2"{}/>)", number(left), number(at),
                    line_colour(series.style), series.dashed ? R"( stroke-dasharray="5 4")" : "");
      if (!series.dashed) put_marker(canvas_, left + 13, at, series.style, true, "");
      entry(at, series.name);
    }
    if (named > shown) entry(at, fmt::format("and {} more", named - shown));
    if (hollow_) {
      put_marker(canvas_, left + 13, at, *hollow_, false, "");
      entry(at, "does not fit in memory");
    }
    if (!chart_.refused.empty()) {
      put_cross(canvas_, left + 13, at, "");
      entry(at, "illegal or failed");
    }
  }

  const Chart& chart_;
  Canvas canvas_;
  double least_x_ = 0, most_x_ = 0, most_y_ = 0, plot_ = 0, top_ = 0;
  bool empty_ = true;
  std::optional<std::size_t> hollow_;  // style of the first series with a point that does not fit
};

}  // namespace

std::string draw_chart(const Chart& chart) {
  return ChartPicture(chart).draw();
}

}  // namespace rehearse
