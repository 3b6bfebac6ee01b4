// How do predictions compare with measurements? A picture: measured from left to right, predicted upwards.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct Comparison {
  std::string name;    // shown on hover
  std::string family;  // has its own colour, or colour and shape beyond eight families
  double measured_s = 0;
  double predicted_s = 0;
};

// A self-contained SVG on logarithmic axes with the same bytes on every run. On the line both times are
// equal; within the band they differ by at most `band` (0.1: 10 %). Comparisons without two positive times
// are omitted.
std::string draw_scatter(const std::string& title, const std::vector<Comparison>& comparisons, double band);

}  // namespace rehearse
