// How does one quantity depend on two others? A picture: a grid of coloured cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct HeatCell {
  std::optional<double> value;  // none: refused
  bool fits = true;
  std::string label;  // the value, or why there is none
  std::string hint;   // shown when the pointer rests on it
};

// cells[row][column]; rows from the lower edge up. Higher values are better.
struct Heatmap {
  std::string title;
  std::string held;  // what was held fixed, as a sentence
  std::string x_label, y_label, value_label;
  std::vector<std::string> x_values, y_values;
  std::vector<std::vector<HeatCell>> cells;
  std::string note;  // below the map
};

// A self-contained SVG that is the same on every run. What does not fit is hatched, what is refused grey; the
// best that fits is framed. Colours are viridis' (van der Walt and Smith, matplotlib 2015): even to the eye
// and in grey, for any colour vision.
std::string draw_heatmap(const Heatmap& map);

}  // namespace rehearse
