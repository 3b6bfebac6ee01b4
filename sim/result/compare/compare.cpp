#include "result/compare/compare.h"

#include <algorithm>
#include <map>

namespace rehearse {

namespace {

// Fields of the plan that follow from others add no information.
bool is_derived(const std::string& field) {
  return field == "microbatches";
}

void add_otherwise(const Json& a, const Json& b, const std::string& prefix, std::vector<Otherwise>& found) {
  for (const auto& [key, value] : a.items()) {
    const Json other = b.value(key, Json());
    if (value != other && !is_derived(key)) found.push_back({prefix + key, value, other});
  }
  for (const auto& [key, value] : b.items())
    if (!a.contains(key) && !is_derived(key)) found.push_back({prefix + key, Json(), value});
}

std::vector<Otherwise> find_otherwise(const Json& a, const Json& b) {
  std::vector<Otherwise> found;
  for (const char* part : {"model", "cluster", "profile", "plan"}) {
    const Json empty = Json::object();
    add_otherwise(a.value(part, empty), b.value(part, empty), std::string(part) + ".", found);
  }
  return found;
}

// Checks the names of a run, where present.
void require_names(const JsonReader& report) {
  for (const char* field : {"source", "engine"})
    if (report.has(field)) report.text(field);
  for (const char* part : {"model", "cluster", "profile", "plan"})
    if (report.has(part) && report.object(part).has("name")) report.object(part).text("name");
}

// Groups quantities of a kind ("bubble_fraction"), at the place of the first.
void group(std::vector<Quantity>& quantities) {
  std::map<std::string, std::size_t> place;
  const auto kind = [](const Quantity& quantity) { return quantity.name.substr(0, quantity.name.find('.')); };
  for (const Quantity& quantity : quantities) place.emplace(kind(quantity), place.size());
  std::ranges::stable_sort(quantities, {},
                           [&](const Quantity& quantity) { return place.at(kind(quantity)); });
}

}  // namespace

std::optional<double> QuantityPair::error() const {
  if (!a || !b || !comparable) return std::nullopt;
  if (*b == 0) return *a == 0 ? std::optional(0.0) : std::nullopt;
  return *a / *b - 1;
}

ComparedRun compared_run(const std::string& name, Json report, const Timeline* timeline,
                         const Schedule* schedule) {
  ComparedRun run{name, std::move(report), {}};
  const JsonReader reader(run.report, name);
  require_names(reader);
  run.quantities = report_quantities(reader);
  const auto append = [&run](const std::vector<Quantity>& more) {
    run.quantities.insert(run.quantities.end(), more.begin(), more.end());
  };
  append(allocated_quantities(reader));
  if (timeline != nullptr && schedule != nullptr) append(timeline_quantities(*timeline, *schedule));
  group(run.quantities);
  return run;
}

ReportComparison compare_runs(ComparedRun a, ComparedRun b) {
  ReportComparison comparison;
  comparison.otherwise = find_otherwise(a.report, b.report);
  std::map<std::string, std::size_t> place;
  for (const Quantity& quantity : a.quantities) {
    place.emplace(quantity.name, comparison.pairs.size());
    comparison.pairs.push_back({quantity.name, quantity.measure, quantity.value, std::nullopt, true});
  }
  for (const Quantity& quantity : b.quantities) {
    const auto found = place.find(quantity.name);
    if (found != place.end())
      comparison.pairs[found->second].b = quantity.value;
    else
      comparison.pairs.push_back({quantity.name, quantity.measure, std::nullopt, quantity.value, true});
  }
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  return comparison;
}

}  // namespace rehearse
