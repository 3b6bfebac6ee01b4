// How are the values of a swept field placed along an axis, and how are they labelled?
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sweep/grid.h"

namespace rehearse::plot {

struct FieldAxis {
  std::string label;               // "global batch (sequences)"
  bool numeric = false;            // else its values are spaced evenly, in the given order
  bool logarithmic = false;        // numeric, positive, and over more than a factor of four
  std::vector<double> at;          // by value
  std::vector<std::string> texts;  // by value, as the user wrote them
};
FieldAxis axis_of(const SweptField& field);

// Index of the field with this pointer; -1 when it is not swept.
int field_at(const Grid& grid, const std::string& pointer);

std::string text_of(const Json& value);

// "tp 8, 1f1b" for all fields except `but`; names such as schedules have no label.
std::string values_in_words(const std::vector<Json>& values, const Grid& grid, const std::set<int>& but);

}  // namespace rehearse::plot
