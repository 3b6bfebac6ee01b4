// The schemas of docs/ agree with plan/fields.h about a plan.
#include <gtest/gtest.h>

#include <filesystem>

#include "json_schema.h"
#include "scenario/scenario.h"
#include "scenario/schema.h"

namespace rehearse {
namespace {

TEST(ScenarioSchema, IsTheOneOfTheDocs) {
  EXPECT_EQ(read_json_file(SOURCE_DIR "/docs/scenario.schema.json"), scenario_schema())
      << "run tools/scenario-page";
}

TEST(ScenarioSchema, AllowsEveryShippedScenario) {
  const JsonSchema schema("scenario.schema.json");
  for (const auto& entry : std::filesystem::directory_iterator(SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_EQ(schema.faults_of(read_json_file(entry.path())), "") << entry.path();
  }
}

TEST(ReportSchema, HasEveryFieldOfAPlan) {
  const Json plan = read_json_file(SOURCE_DIR "/docs/report.schema.json").at("/properties/plan"_json_pointer);
  Json wanted = reported_plan_schema();
  std::vector<std::string> required;
  for (const auto& [key, type] : wanted.items()) {
    required.push_back(key);
    EXPECT_EQ(plan.at("properties").value(key, Json()), type) << key;
  }
  EXPECT_EQ(plan.at("properties").size(), wanted.size() + 1) << "microbatches alone is no field";
  EXPECT_FALSE(plan.at("additionalProperties"));
}

// A flag that --help explains reaches the plan: every field has one, and no two share a name.
TEST(PlanFields, HaveFlagsOfTheirOwn) {
  std::set<std::string> names;
  for (const Flag& flag : scenario_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    for (const std::string& alias : flag.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_FALSE(flag.help.empty() || flag.value.empty()) << flag.name;
  }
  EXPECT_GT(names.size(), plan_fields().size());
}

}  // namespace
}  // namespace rehearse
