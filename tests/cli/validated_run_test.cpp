// `validate` with runs that a user adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A run of eight GPUs whose source says all but one switch.
Json run_of_my_own() {
  return Json::parse(R"({"id": "mine", "scenario": {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 8,
    "plan": {"tp": 8, "global_batch": 8, "seq": 2048, "fused_norm": false}}, "measured": {"step_time_s": 1},
    "stated": ["/model", "/cluster", "/gpus", "/plan/tp", "/plan/global_batch", "/plan/seq"],
    "why": {"/plan/fused_norm": "a script"}})");
}

Outcome validated(const std::vector<Json>& runs, const std::string& flags = "--json ") {
  std::string text;
  for (const Json& run : runs) text += run.dump() + "\n";
  return run_program("validate " + flags + temporary_file("runs.jsonl", text));
}

TEST(ValidatedRun, PredictsWithAllSwitchesAndAsStated) {
  Json all_stated = run_of_my_own();
  all_stated.erase("stated");
  all_stated.erase("why");
  Json defaults = all_stated;
  defaults["scenario"]["plan"].erase("fused_norm");
  const Json said = Json::parse(validated({run_of_my_own(), all_stated, defaults}).out);
  const Json& runs = said["runs"];
  EXPECT_GT(runs[0]["predicted_s"], runs[0]["predicted_as_stated_s"]);
  EXPECT_EQ(runs[0]["predicted_s"], runs[1]["predicted_s"]);
  EXPECT_EQ(runs[1]["predicted_as_stated_s"], runs[1]["predicted_s"]);
  EXPECT_EQ(runs[0]["predicted_as_stated_s"], runs[2]["predicted_s"]);
  const double as_stated = runs[0]["predicted_as_stated_s"];
  EXPECT_NEAR(runs[0]["error_as_stated"], as_stated - 1, 1e-12);
  EXPECT_EQ(runs[0]["inside_interval"], runs[0]["inside_band"]);
  EXPECT_EQ(said["summary_as_stated"]["all"]["n"], 3);
  EXPECT_EQ(said["summary"]["all"]["n"], 3);
  const Json one = Json::parse(validated({run_of_my_own()}, "--as-stated off --json ").out);
  EXPECT_EQ(one["runs"][0]["predicted_s"], runs[0]["predicted_s"]);
  EXPECT_TRUE(one["runs"][0]["predicted_as_stated_s"].is_null());
  EXPECT_EQ(one["summary_as_stated"]["all"]["n"], 0);
  const Outcome table = validated({run_of_my_own()}, "");
  EXPECT_THAT(table.out, HasSubstr("as stated"));
}

TEST(ValidatedRun, AnIdDecidesNothing) {
  std::vector<Json> runs;
  for (const char* id : {"titan-8b-8gpu-fsdp", "bloom-8b", "mlperf-v3"}) {
    runs.push_back(run_of_my_own());
    runs.back()["id"] = runs.back()["family"] = id;
  }
  const Json said = Json::parse(validated(runs).out)["runs"];
  for (const Json& run : said)
    for (const char* key : {"predicted_s", "predicted_as_stated_s"})
      EXPECT_EQ(run[key], said[0][key]) << run["id"];
}

TEST(ValidatedRun, RefusesUnknownWordsWithTheirLine) {
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, Json>>{{"/scenario/plan/clip_gard", 1},
                                                 {"/scenario/plan/schedule", "1f2b"},
                                                 {"/scenario/cluster", "dgx-h1000"},
                                                 {"/scenario/model", "llama3-9b"},
                                                 {"/scenario/nodes", 1},
                                                 {"/measured/step_time", 1}}) {
    Json run = run_of_my_own();
    run.erase("stated");
    run[Json::json_pointer(pointer)] = value;
    const Outcome refused = validated({run_of_my_own(), run});
    EXPECT_EQ(refused.exit_code, 2) << pointer;
    EXPECT_THAT(refused.err, HasSubstr("runs.jsonl:2")) << pointer;
  }
}

TEST(ValidatedRun, ReadsModelsThatAreWrittenOut) {
  const Json model =
      Json::parse(R"({"model_type": "megatron_gpt", "num_hidden_layers": 4, "hidden_size": 1024,
    "num_attention_heads": 8, "intermediate_size": 4096, "vocab_size": 1024, "normalization": "LayerNorm",
    "position_embedding_type": "alibi", "activation": "gelu"})");
  Json run = run_of_my_own();
  run["scenario"]["model"] = model;
  EXPECT_TRUE(Json::parse(validated({run}).out)["runs"][0]["predicted_s"].is_number());
  run["scenario"]["model"]["hidden_sise"] = 1;
  EXPECT_THAT(validated({run}).err, HasSubstr("/scenario/model/hidden_sise"));
}

TEST(ValidatedRun, RunThatCannotBeSimulatedIsListedWithItsReason) {
  Json run = run_of_my_own();
  run["scenario"]["plan"]["tp"] = 3;
  const Json said = Json::parse(validated({run}).out)["runs"][0];
  EXPECT_THAT(said["skipped"].get<std::string>(), HasSubstr("tp"));
  EXPECT_THAT(said["skipped_as_stated"].get<std::string>(), HasSubstr("tp"));
  EXPECT_TRUE(said["predicted_as_stated_s"].is_null());
}

TEST(ValidatedRun, NamesTheScriptThatTurnsRowsIntoRuns) {
  const Outcome rows =
      run_program("validate " + temporary_file("rows.json", R"([{"id": "mine", "family": "sc21"}])"));
  EXPECT_EQ(rows.exit_code, 2);
  EXPECT_THAT(rows.err, HasSubstr("tools/convert-runs"));
  EXPECT_EQ(run_program("validate %/nowhere.jsonl").exit_code, 2);
}

}  // namespace
}  // namespace rehearse
