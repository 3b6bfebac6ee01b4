// Written files are read back with the same meaning.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "json_schema.h"
#include "result/compare/quantities.h"
#include "result/report_json.h"
#include "run.h"
#include "run/reference.h"
#include "schedule/orders.h"
#include "schedule/text.h"
#include "scratch.h"

namespace rehearse::properties {
namespace {

std::string report_text(const Run& run) {
  return write_report_json(report_of(run.experiment, run.ready, run.reference), "1.2.3");
}

void require_valid(const JsonSchema& schema, const Json& json) {
  const std::string faults = schema.faults_of(json);
  if (!faults.empty()) RC_FAIL(faults);
}

RC_GTEST_PROP(LegalRun, HasAReportThatItsSchemaAllows, ()) {
  static const JsonSchema schema("report.schema.json");
  require_valid(schema, Json::parse(report_text(*legal_run())));
}

RC_GTEST_PROP(LegalRun, IsAScenarioThatItsSchemaAllows, ()) {
  static const JsonSchema schema("scenario.schema.json");
  const auto run = legal_run();
  require_valid(schema, run->source.json);
  Json reported = run->source.json;  // a report's plan is a scenario's
  reported["plan"] = Json::parse(report_text(*run)).at("plan");
  require_valid(schema, reported);
}

RC_GTEST_PROP(LegalRun, HasAReportThatIsReadAndWrittenAsItWas, ()) {
  const std::string text = report_text(*legal_run());
  const Json json = Json::parse(text);
  RC_ASSERT(json.dump(2) + "\n" == text);
  std::set<std::string> names;
  for (const Quantity& quantity : report_quantities(JsonReader(json, "report.json"))) {
    RC_ASSERT(std::isfinite(quantity.value));
    if (!names.insert(quantity.name).second) RC_FAIL("two quantities are named " + quantity.name);
  }
}

RC_GTEST_PROP(LegalRun, IsThePlanThatItsReportNames, ()) {
  const auto run = legal_run();
  ScenarioSource source = run->source;
  source.json["plan"] = Json::parse(report_text(*run)).at("plan");
  RC_ASSERT(read(source).plan == run->experiment.plan);
}

std::string as_flag(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& entry : value) list += (list.empty() ? "" : ",") + as_flag(entry);
  return list;
}

RC_GTEST_PROP(LegalRun, IsTheSameWhenItIsGivenAsFlags, ()) {
  const auto run = legal_run();
  GivenFlags given;
  for (const Flag& flag : scenario_flags()) {
    const Json::json_pointer pointer(flag.pointer);
    if (run->source.json.contains(pointer)) given.values[flag.name] = as_flag(run->source.json.at(pointer));
  }
  ScenarioSource source;
  if (run->source.json.contains("cluster_changes"))
    source.json["cluster_changes"] = run->source.json.at("cluster_changes");
  write_flags(given, source);
  const Experiment again = read(source);
  RC_ASSERT(again.plan == run->experiment.plan);
  Loads loads;
  const Preparation ready = prepared(again, loads);
  RC_ASSERT(reference(ready.schedule, ready.tasks, loads).end() == run->reference.end());
}

// As `export schedule` writes it and `--schedule` reads it. A full file has the places of messages, but not
// that compute waits for them. So an order is read back unchanged only where compute does not wait.
RC_GTEST_PROP(LegalRun, TakesAsLongWhenItsOrderIsReadFromAFile, ()) {
  const auto run = legal_run();
  const Plan& plan = run->experiment.plan;
  const bool full = plan.overlap_p2p && *rc::gen::arbitrary<bool>();
  const std::string file =
      scratch().write("order.csv", write_csv(full ? run->ready.schedule : make_order(plan)));
  ScenarioSource source = run->source;
  source.json["plan"]["schedule"] = file;
  source.json["plan"].erase("microbatch_group");
  source.json["plan"]["overlap_p2p"] = plan.overlap_p2p;
  const Experiment again = read(source);
  Loads loads;
  const Preparation ready = prepared(again, loads);
  const double end = reference(ready.schedule, ready.tasks, loads).end();
  if (std::abs(end - run->reference.end()) > 1e-9 * run->reference.end())
    RC_FAIL(fmt::format("{} s, from a file ({}) {} s", run->reference.end(), full ? "full" : "compute", end));
}

}  // namespace
}  // namespace rehearse::properties
