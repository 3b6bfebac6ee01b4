// How does one quantity depend on another? A picture: curves of points, with what is refused marked where it
// would stand.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct ChartPoint {
  double x = 0, y = 0;
  bool fits = true;  // hollow where it does not fit in memory
  std::string hint;  // shown when the pointer rests on it
};

// Points are joined in order where `joined`. Series of one `style` have one colour and marker.
struct ChartSeries {
  std::string name;  // in the legend; "": not there
  std::vector<ChartPoint> points;
  std::size_t style = 0;
  bool dashed = false;  // a reference: dashed and without markers
  bool joined = true;
};

// What has no y: a cross at the foot of the plot, with their number where several have one x.
struct RefusedPoint {
  double x = 0;
  std::string hint;
};

struct ChartTick {
  double at = 0;
  std::string label;
};

// Values are in the units that the labels name. The y axis begins at 0.
struct Chart {
  std::string title;
  std::string held;  // what was held fixed, as a sentence
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

// A self-contained SVG that is the same on every run.
std::string draw_chart(const Chart& chart);

}  // namespace rehearse
