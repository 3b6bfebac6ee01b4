// How does one quantity depend on another? A picture: curves of points, with refused points marked at their
// x.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct ChartPoint {
  double x = 0, y = 0;
  bool fits = true;  // hollow where it does not fit in memory
  std::string hint;  // shown on hover
};

// Points are joined in order where `joined`. Series with the same `style` share colour and marker.
struct ChartSeries {
  std::string name;  // in the legend; "": not in it
  std::vector<ChartPoint> points;
  std::size_t style = 0;
  bool dashed = false;  // a reference: dashed and without markers
  bool joined = true;
};

// A point without y: a cross at the bottom of the plot, with their number where several have the same x.
struct RefusedPoint {
  double x = 0;
  std::string hint;
};

struct ChartTick {
  double at = 0;
  std::string label;
};

// Values are in the units of the labels. The y axis begins at 0.
struct Chart {
  std::string title;
  std::string held;  // fixed settings, as a sentence
  std::string x_label, y_label;
  bool logarithmic_x = false;
  bool x_from_zero = false;
  std::vector<ChartTick> x_ticks;  // empty: round values
  std::vector<ChartSeries> series;
  std::vector<RefusedPoint> refused;
  std::optional<ChartTick> limit;           // a horizontal line
  std::optional<ChartTick> vertical_limit;  // and a vertical one
  std::string note;                         // below the plot
};

// A self-contained SVG with the same bytes on every run.
std::string draw_chart(const Chart& chart);

}  // namespace rehearse
