#include "calibrate/import/tables.h"

#include <fmt/format.h>

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

double rounded(double value, int digits) {
  return std::stod(fmt::format("{:.{}e}", value, digits - 1));
}

}  // namespace rehearse
