#include <algorithm>
#include <functional>

#include "base/percentile.h"
#include "calibrate/import/tables.h"

namespace rehearse {

namespace {

// The median, in seconds, of `value` over the rows of the GPU that the recipe names.
double median_s(const Json& table, const Entry& entry, const std::function<double(const Json& row)>& value) {
  const std::string gpu = entry.recipe.text("gpu");
  const std::size_t name = column(table, "gpu", entry.recipe.text("file"));
  std::vector<double> values;
  for (const Json& row : table.at("rows"))
    if (row.at(name).get<std::string>().find(gpu) != std::string::npos) values.push_back(value(row));
  if (values.empty()) entry.recipe.fail("gpu", "must be a GPU of the table", "found \"" + gpu + "\"");
  std::ranges::sort(values);
  return rounded(1e-6 * percentile(values, 0.5));
}

// Time of one operation on the host of a GPU, in a framework.
double operation_s(const Json& table, const JsonReader& wanted, const std::string& file) {
  const Json& operations = table.at("operations");
  const std::string gpu = wanted.text("gpu"), framework = wanted.text("framework");
  wanted.reject_unknown();
  const std::size_t name = column(operations, "gpu", file), by = column(operations, "framework", file),
                    us = column(operations, "us", file);
  std::string known;
  for (const Json& row : operations.at("rows")) {
    if (row.at(name) == gpu && row.at(by) == framework) return rounded(1e-6 * row.at(us).get<double>());
    known += (known.empty() ? "" : ", ") + row.at(name).get<std::string>() + " in " +
             row.at(by).get<std::string>();
  }
  wanted.fail("gpu", "must stand in the table with the framework", "found " + gpu + " in " + framework,
              known);
}

}  // namespace

HostTimes import_host_launch(const Entry& entry, std::vector<Source>& sources) {
  const Json table = read_table(entry);
  const std::string file = entry.recipe.text("file");
  sources.push_back(source_of(table, entry.recipe.text("note")));
  const std::size_t mean = column(table, "mean_gap_us", file);
  const Json& calls = table.at("collectives");
  const std::size_t span = column(calls, "median_span_us", file), gap = column(calls, "mean_gap_us", file);
  // A span holds NCCL's launch and the first after it: an ordinary one.
  const HostTimes traced = {
      median_s(table, entry, [mean](const Json& row) { return row.at(mean).get<double>(); }),
      median_s(calls, entry,
               [=](const Json& row) { return row.at(span).get<double>() - row.at(gap).get<double>(); })};
  if (!entry.recipe.has("operation")) return traced;
  const double launch_s = operation_s(table, entry.recipe.object("operation"), file);
  return {launch_s, rounded(traced.collective_s * launch_s / traced.launch_s)};
}

}  // namespace rehearse
