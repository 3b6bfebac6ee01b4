#include "sweep/grid.h"

#include <fmt/core.h>

namespace rehearse {

namespace {

constexpr Point kMaxPoints = 100'000'000;

}  // namespace

Point Grid::size() const {
  Point points = 1;
  for (const SweptField& field : fields) {
    const auto values = static_cast<Point>(field.values.size());
    if (values > kMaxPoints / points) {
      throw InputError({"command line", field.name, fmt::format("a sweep has at most {} points", kMaxPoints),
                        fmt::format("{} x {}", points, values), ""});
    }
    points *= values;
  }
  return points;
}

std::vector<Json> Grid::values_at(Point point) const {
  std::vector<Json> values(fields.size());
  for (std::size_t i = fields.size(); i-- > 0;) {
    const auto count = static_cast<Point>(fields[i].values.size());
    values[i] = fields[i].values[static_cast<std::size_t>(point % count)];
    point /= count;
  }
  return values;
}

}  // namespace rehearse
