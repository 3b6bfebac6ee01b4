// Which points does a sweep have? The cross product of its fields' values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

struct SweptField {
  std::string name;          // as a column: "mbs", "plan.micro_batch"
  std::string pointer;       // into the scenario: "/plan/micro_batch"
  std::vector<Json> values;  // at least one
};

using Point = std::int64_t;  // number of a point, from 0

// The last field varies fastest.
struct Grid {
  std::vector<SweptField> fields;

  // Number of points; InputError beyond 100 million.
  Point size() const;
  // One value for each field.
  std::vector<Json> values_at(Point point) const;
};

}  // namespace rehearse
