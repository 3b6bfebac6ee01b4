// How the rows of a file of published runs are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(Validate, WhatIsNoListOfRunsIsRefused) {
  const Outcome object = run_program("validate " + temporary_file("no_runs.json", "{}"));
  EXPECT_EQ(object.exit_code, 2);
  EXPECT_THAT(object.err, HasSubstr("must be a list of runs"));
  const Outcome row = run_program("validate " + temporary_file("bad_run.json", R"([{"id": 7}])"));
  EXPECT_EQ(row.exit_code, 2);
  EXPECT_THAT(row.err, HasSubstr("/0"));
  EXPECT_EQ(run_program("validate %/nowhere.json").exit_code, 2);
}

// A run of InternEvo on 16 GPUs, with what its row says of ZeRO-1's group.
Json internevo_run(const std::string& group) {
  const std::string row = R"([{"id": "mine", "family": "internevo", "cluster": "dgx-a100-80gb",
    "hardware": {"n_gpus": 16}, "batch": {"micro": 1, "global": 16}, "precision": "bf16", "recompute": "none",
    "model": {"name": "m", "layers": 4, "hidden": 1024, "heads": 8, "vocab": 1024, "seq_len": 2048},
    "parallel": {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 1)" +
                          group + R"(}, "measured": {"iteration_s": 1}}])";
  return Json::parse(run_program("validate --json " + temporary_file("run.json", row)).out)["runs"][0];
}

TEST(Validate, ReadsShardingGroupsAsNumbersAndInWords) {
  const auto seconds = [](const std::string& group) {
    const Json run = internevo_run(group);
    EXPECT_TRUE(run["skipped"].is_null()) << run["skipped"];
    return run["predicted_s"];
  };
  const Json eight = seconds(R"(, "zero1_group": 8)"), whole = seconds("");
  EXPECT_NE(eight, whole);
  EXPECT_EQ(seconds(R"(, "zero1_group": "8")"), eight);
  EXPECT_EQ(seconds(R"(, "zero1_group": "whole data-parallel group")"), whole);
  for (const char* words : {"a few", "8 nodes", "", "99999999999999999999"}) {
    const Json run = internevo_run(", \"zero1_group\": " + Json(words).dump());
    ASSERT_TRUE(run["skipped"].is_string()) << words;
    EXPECT_THAT(run["skipped"].get<std::string>(), HasSubstr("zero_shard")) << words;
  }
}

// Seconds of a step on two GPUs whose row says `vocab`, and what it says to be `missing`.
double seconds_of(const std::string& family, int vocab, const std::string& missing = "[]") {
  const std::string row =
      R"([{"id": "mine", "cluster": "dgx-a100-80gb", "hardware": {"n_gpus": 2},
    "batch": {"micro": 8, "global": 8}, "precision": "bf16", "recompute": "none",
    "parallel": {"tp": 2, "pp": 1, "dp": 1}, "measured": {"iteration_s": 1}, "family": ")" +
      family + R"(", "missing": )" + missing +
      R"(, "model": {"name": "m", "layers": 4, "hidden": 1024, "heads": 8, "seq_len": 2048,
    "vocab": )" +
      std::to_string(vocab) + "}}]";
  const Json run =
      Json::parse(run_program("validate --json " + temporary_file("run.json", row)).out)["runs"][0];
  EXPECT_TRUE(run["predicted_s"].is_number()) << run;
  return run.value("predicted_s", 0.0);
}

// 50432 = 197 x 256: so many rows on each of two ranks are the next multiple of 128.
TEST(Validate, MegatronPadsTheVocabularyAndOthersDoNot) {
  EXPECT_EQ(seconds_of("sc21", 50257), seconds_of("sc21", 50432));
  EXPECT_GT(seconds_of("nanotron", 50257), seconds_of("nanotron", 50432));
}

// vTrain: 50257 // 2 = 25128 rows a rank, which are a multiple of 8.
TEST(Validate, AVocabularyThatTheRowAssumesIsTheFamilys) {
  const double assumed = seconds_of("vtrain-single", 51200, R"(["vocab"])");
  EXPECT_EQ(assumed, seconds_of("vtrain-single", 1024, R"(["vocab"])"));
  EXPECT_LT(assumed, seconds_of("vtrain-single", 51200));
}

// On two B200, whose products take any of them.
Outcome validated_in(const std::string& precision) {
  const std::string row = R"([{"id": "mine", "family": "bridge", "cluster": "dgx-b200",
    "hardware": {"n_gpus": 2}, "batch": {"micro": 1, "global": 8}, "recompute": "none", "precision": )" +
                          Json(precision).dump() + R"(,
    "model": {"name": "m", "layers": 4, "hidden": 4096, "heads": 32, "vocab": 1024, "seq_len": 4096},
    "parallel": {"tp": 1, "pp": 1, "dp": 2, "zero_stage": 1}, "measured": {"iteration_s": 1}}])";
  return run_program("validate --json " + temporary_file("run.json", row));
}

TEST(Validate, ReadsPrecisionsInAnyLettersAndRefusesOthersByName) {
  const auto seconds = [](const std::string& precision) {
    const Json run = Json::parse(validated_in(precision).out)["runs"][0];
    EXPECT_TRUE(run["predicted_s"].is_number()) << run["skipped"];
    return run["predicted_s"].is_number() ? run["predicted_s"].get<double>() : 0;
  };
  EXPECT_EQ(seconds("BF16"), seconds("amp_bf16"));
  EXPECT_EQ(seconds("FP8 (MXFP8)"), seconds("fp8 (MXFP8)"));
  EXPECT_EQ(seconds("NVFP4"), seconds("fp4"));
  EXPECT_LT(seconds("NVFP4"), seconds("FP8 (MXFP8)"));
  EXPECT_LT(seconds("MXFP8"), seconds("bf16"));
  for (const char* precision : {"tf32", "int8", ""}) {
    const Outcome refused = validated_in(precision);
    EXPECT_EQ(refused.exit_code, 2) << precision;
    EXPECT_THAT(refused.err, HasSubstr("/0/precision")) << precision;
  }
}

TEST(Validate, RunThatCannotBeSimulatedIsListedWithItsReason) {
  const std::string row = R"([{"id": "mine", "family": "of my own", "cluster": "no-such-cluster",
    "hardware": {"n_gpus": 8}, "batch": {"micro": 1, "global": 8}, "precision": "bf16", "recompute": "none",
    "model": {"name": "m", "layers": 4, "hidden": 512, "heads": 8, "vocab": 1024, "seq_len": 128},
    "parallel": {"tp": 1, "pp": 1, "dp": 8}, "measured": {"iteration_s": 1}}])";
  const Json json = Json::parse(run_program("validate --json " + temporary_file("run.json", row)).out);
  EXPECT_THAT(json["runs"][0]["skipped"].get<std::string>(), HasSubstr("no-such-cluster"));
}

// Of a row's few words each is known, or refused where it stands.
TEST(Validate, RefusesWordsThatNoRowHas) {
  const Json rows = Json::parse(std::ifstream(std::string(SOURCE_DIR) + "/calibrate/data/runs/published_runs.json"));
  const auto refused = [&](const char* pointer, const Json& word) {
    Json row = rows[0];
    row[Json::json_pointer(pointer)] = word;
    const Outcome run = run_program("validate " + temporary_file("words.json", Json::array({row}).dump()));
    return run.exit_code == 2 ? run.err : "exit " + std::to_string(run.exit_code);
  };
  for (const char* pointer : {"/parallel/cp_method", "/parallel/ddp_impl", "/parallel/layer_split",
                              "/parallel/fsdp", "/parallel/schedule", "/recompute", "/precision", "/offload"})
    EXPECT_THAT(refused(pointer, "nonsense"), HasSubstr("nonsense")) << pointer;
  EXPECT_THAT(refused("/parallel/cp_method", "nonsense"), HasSubstr("/0/parallel/cp_method"));
  for (const char* ring : {"p2p", "ring", "allgather", "a2a"})
    EXPECT_EQ(refused("/parallel/cp_method", ring), "exit 0") << ring;
}

}  // namespace
}  // namespace rehearse
