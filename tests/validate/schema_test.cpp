// The shipped runs are as docs/run.schema.json says.
#include <gtest/gtest.h>

#include <fstream>

#include "json_schema.h"

namespace rehearse {
namespace {

class ShippedRuns : public testing::TestWithParam<const char*> {};

TEST_P(ShippedRuns, AreAsTheSchemaSays) {
  const JsonSchema schema("run.schema.json"), scenario("scenario.schema.json");
  std::ifstream file(std::string(SOURCE_DIR "/calibrate/data/runs/") + GetParam() + "_runs.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto run = nlohmann::json::parse(line);
    ASSERT_EQ(schema.faults_of(run), "") << lines;
    ASSERT_EQ(scenario.faults_of(run.at("scenario")), "") << lines;
  }
  EXPECT_GT(lines, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, ShippedRuns,
                         testing::Values("published", "jean_zay", "layout", "nemo", "torchtitan", "vtrain"));

TEST(RunSchema, RefusesUnknownKeys) {
  const JsonSchema schema("run.schema.json");
  auto run = nlohmann::json::parse(
      R"({"id": "mine", "scenario": {"model": "m", "cluster": "c", "plan": {}}, "measured": {"step_time_s": 1}})");
  EXPECT_EQ(schema.faults_of(run), "");
  run["familly"] = "x";
  EXPECT_NE(schema.faults_of(run), "");
  run.erase("familly");
  run["measured"]["step_time"] = 1;
  EXPECT_NE(schema.faults_of(run), "");
}

}  // namespace
}  // namespace rehearse
