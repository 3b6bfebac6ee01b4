#include "calibrate/import/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace rehearse {

Json read_table(const Entry& entry, const std::string& key) {
  return read_json_file((entry.data / entry.recipe.text(key)).string());
}

Source source_of(const Json& table, const std::string& note) {
  const Json& source = table.at("source");
  std::string title = source.at("title").get<std::string>();
  if (source.contains("commit")) title += fmt::format("@{:.8}", source.at("commit").get<std::string>());
  return {title, source.value("license", ""), note};
}

std::size_t column(const Json& table, const std::string& name, const std::string& file) {
  const Json& columns = table.at("columns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == name) return i;
  }
  throw InputError({file, "/columns", "needs a column " + name, "found " + columns.dump(), ""});
}

std::int64_t count_of(const Json& cell) {
  constexpr double kMax = 1e12;
  const auto count = cell.get<double>();
  if (count >= 0 && count <= kMax && count == std::floor(count)) return static_cast<std::int64_t>(count);
  throw InputError({"a table of the recipe", "/rows", "a count must be a whole number from 0 to 10^12",
                    "found " + cell.dump(), ""});
}

double peak_flops_of(const JsonReader& recipe, const Gpu& gpu) {
  const std::string precision = recipe.text("precision");
  const auto peak = gpu.peak_flops.find(precision);
  if (peak == gpu.peak_flops.end())
    recipe.fail("precision", "needs a peak in /gpu/peak_flops", "found \"" + precision + "\"");
  return peak->second;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double rounded(double value, int digits) {
  return std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
}

}  // namespace rehearse
