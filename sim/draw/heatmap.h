// How does one quantity depend on two others? A picture: a grid of coloured cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct HeatCell {
  std::optional<double> value;  // none: refused
  bool fits = true;
  std::string label;  // the value, or the reason why there is none
  std::string hint;   // shown on hover
};

// cells[row][column]; rows from the lower edge up. Higher values are better.
struct Heatmap {
  std::string title;
  std::string held;  // fixed settings, as a sentence
  std::string x_label, y_label, value_label;
  std::vector<std::string> x_values, y_values;
  std::vector<std::vector<HeatCell>> cells;
  std::string note;  // below the map
};

// A self-contained SVG with the same bytes on every run. Cells that do not fit are hatched, refused ones are
// grey, and the best that fits is framed. Colours are viridis' (van der Walt and Smith, matplotlib 2015):
// perceptually uniform, also in grey, for any colour vision.
std::string draw_heatmap(const Heatmap& map);

}  // namespace rehearse
