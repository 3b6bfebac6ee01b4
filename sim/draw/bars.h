// How do several totals divide into parts? A picture: one stacked bar each.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct Bar {
  std::string name;
  std::vector<double> parts;  // one for each of StackedBars::parts; empty: refused
  bool fits = true;
  std::string total;  // written at the bar's end, or the reason why there is none
  std::string hint;   // shown on hover
};

struct BarPart {
  std::string name;
  std::string colour;  // "#rrggbb"
};

// Values are in the unit that the label names.
struct StackedBars {
  std::string title;
  std::string held;  // fixed settings, as a sentence
  std::string label;
  std::vector<BarPart> parts;
  std::vector<Bar> bars;
  std::string note;  // below the bars
};

// A self-contained SVG with the same bytes on every run. Bars are one below the other, in order.
std::string draw_bars(const StackedBars& bars);

}  // namespace rehearse
