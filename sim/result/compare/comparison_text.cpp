#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "memory/verdict.h"
#include "result/compare/compare.h"
#include "result/lines.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestName = 40;

std::string text_of(Measure measure, const std::optional<double>& value) {
  if (!value) return "-";
  switch (measure) {
    case Measure::seconds:
      return *value == 0 ? "0" : format_seconds(*value);
    case Measure::bytes:
      return *value == 0 ? "0" : format_bytes(*value);
    case Measure::share:
      return fmt::format("{:.2f} %", 100 * *value);
    case Measure::count:
      return *value == std::floor(*value) && *value < 1e9 ? fmt::format("{:.0f}", *value)
                                                          : fmt::format("{:.5g}", *value);
  }
  return "";
}

std::string error_text(const QuantityPair& pair) {
  const std::optional<double> error = pair.error();
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "-";
}

// The difference relative to the step time of b, or in points for a share.
std::string weight_text(const QuantityPair& pair, double step_b) {
  if (!pair.a || !pair.b) return "";
  const double difference = *pair.a - *pair.b;
  if (pair.measure == Measure::share) return fmt::format("{:+.2f} points", 100 * difference);
  if (!pair.name.starts_with("time_s.") || step_b <= 0) return "";
  return fmt::format("{:+.1f} % of step", 100 * difference / step_b);
}

bool worth_a_line(const QuantityPair& pair) {
  return pair.a.value_or(0) != 0 || pair.b.value_or(0) != 0;
}

// Null for older reports, which have no verdict.
Json verdict_of(const ComparedRun& run) {
  return run.report.value("memory", Json::object()).value("verdict", Json());
}

std::string described(const ComparedRun& run) {
  const Json& report = run.report;
  const bool fits = verdict_of(run) != Json(to_string(Verdict::does_not_fit));
  return fmt::format("{} ({}, {}): {} on {}{}", run.name, report.value("source", "?"),
                     report.value("engine", "?"), report.value("model", Json::object()).value("name", "?"),
                     report.value("cluster", Json::object()).value("name", "?"),
                     fits ? "" : "; does not fit in memory");
}

}  // namespace

std::string comparison_table(const ReportComparison& comparison) {
  Lines page;
  page.line("A  {}", described(comparison.a));
  page.line("B  {}", described(comparison.b));
  for (const Otherwise& field : comparison.otherwise)
    page.line("   {}: A {}, B {}", field.field, field.a.dump(), field.b.dump());
  std::size_t width = 10;
  double step_b = 0;
  for (const QuantityPair& pair : comparison.pairs) {
    if (worth_a_line(pair)) width = std::max(width, std::min(pair.name.size(), kLongestName));
    if (pair.name == "step_time_s") step_b = pair.b.value_or(0);
  }
  page.line("");
  page.line("{:<{}}  {:>12}  {:>12}  {:>9}", "", width, "A", "B", "A/B - 1");
  std::string group;
  for (const QuantityPair& pair : comparison.pairs) {
    if (!worth_a_line(pair)) continue;
    const std::string of = pair.name.substr(0, pair.name.find('.'));
    if (pair.name.find('.') != std::string::npos && of != group) page.line("");
    group = of;
    const std::string weight = weight_text(pair, step_b);
    page.line("{:<{}}  {:>12}  {:>12}  {:>9}{}{}", pair.name, width, text_of(pair.measure, pair.a),
              text_of(pair.measure, pair.b), error_text(pair), weight.empty() ? "" : "  ", weight);
  }
  return page.take();
}

Json comparison_json(const ReportComparison& comparison) {
  const auto side = [](const ComparedRun& run) {
    return Json{{"name", run.name},
                {"source", run.report.value("source", "")},
                {"engine", run.report.value("engine", "")},
                {"verdict", verdict_of(run)}};
  };
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json otherwise = Json::array(), quantities = Json::array();
  for (const Otherwise& field : comparison.otherwise)
    otherwise.push_back({{"field", field.field}, {"a", field.a}, {"b", field.b}});
  for (const QuantityPair& pair : comparison.pairs)
    quantities.push_back({{"name", pair.name},
                          {"a", or_null(pair.a)},
                          {"b", or_null(pair.b)},
                          {"error", or_null(pair.error())}});
  return {{"schema", "rehearse.comparison/1"},
          {"a", side(comparison.a)},
          {"b", side(comparison.b)},
          {"otherwise", otherwise},
          {"quantities", quantities}};
}

}  // namespace rehearse
