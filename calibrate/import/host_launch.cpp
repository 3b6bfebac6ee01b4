#include <algorithm>

#include "calibrate/import/tables.h"

namespace rehearse {

double import_host_launch(const Entry& entry, std::vector<Source>& sources) {
  const Json table = read_table(entry);
  const std::string file = entry.recipe.text("file"), gpu = entry.recipe.text("gpu");
  const std::size_t name = column(table, "gpu", file), mean = column(table, "mean_gap_us", file);
  std::vector<double> gaps;
  for (const Json& row : table.at("rows")) {
    if (row.at(name).get<std::string>().find(gpu) != std::string::npos) gaps.push_back(row.at(mean));
  }
  if (gaps.empty()) entry.recipe.fail("gpu", "must be a GPU of the table", "found \"" + gpu + "\"");
  sources.push_back(source_of(table, entry.recipe.text("note")));
  std::sort(gaps.begin(), gaps.end());
  const std::size_t half = gaps.size() / 2;
  return rounded(1e-6 * (gaps.size() % 2 == 1 ? gaps[half] : (gaps[half - 1] + gaps[half]) / 2));
}

}  // namespace rehearse
