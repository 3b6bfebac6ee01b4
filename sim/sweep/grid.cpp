#include "sweep/grid.h"

#include <fmt/format.h>

#include <charconv>

namespace rehearse {

namespace {

constexpr Point kMostPoints = 100'000'000;

}  // namespace

Point Grid::size() const {
  Point points = 1;
  for (const SweptField& field : fields) {
    const auto values = static_cast<Point>(field.values.size());
    if (values > kMostPoints / points) {
      throw InputError({"command line", field.name, fmt::format("a sweep has at most {} points", kMostPoints),
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

Shard parse_shard(const std::string& text) {
  Shard shard;
  const std::size_t slash = text.find('/');
  const auto number = [&](std::size_t from, std::size_t to, int& value) {
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, value);
    return error == std::errc() && end == text.data() + to;
  };
  const bool numbers = slash != std::string::npos && number(0, slash, shard.index) &&
                       number(slash + 1, text.size(), shard.count);
  if (!numbers || shard.index < 1 || shard.index > shard.count) {
    throw InputError({"command line", "--shard", "must be i/n with i from 1 to n",
                      fmt::format("found \"{}\"", text), "1/4"});
  }
  return shard;
}

}  // namespace rehearse
