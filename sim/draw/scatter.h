// How do predictions compare with what was measured? A picture: measured from left to right, predicted
// upwards.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct Comparison {
  std::string name;    // shown when the pointer rests on it
  std::string family;  // of one colour, or one colour and shape beyond eight families
  double measured_s = 0;
  double predicted_s = 0;
};

// A self-contained SVG on logarithmic axes that is the same on every run; on the line both agree, within the
// band they differ by at most `band` (0.1: 10 %). Comparisons without two positive times are left out.
std::string draw_scatter(const std::string& title, const std::vector<Comparison>& comparisons, double band);

}  // namespace rehearse
