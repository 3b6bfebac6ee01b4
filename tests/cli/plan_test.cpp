// The plan verb as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kSearch = "plan --model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096 ";

std::string flags_of(const Json& plan) {
  std::string flags;
  for (const char* key : {"tp", "cp", "pp", "vpp", "ep", "zero", "recompute", "schedule"})
    flags += std::string(" --") + key + " " +
             (plan[key].is_string() ? plan[key].get<std::string>() : plan[key].dump());
  return flags + " --mbs " + plan["micro_batch"].dump();
}

TEST(Plan, FindsPlansInOrderAndEachIsWhatSimulateSays) {
  for (const char* engine : {"simgrid", "reference"}) {
    const std::string search = std::string(kSearch) + "--engine " + engine;
    const Json found = Json::parse(run_program(search + " --top 3 --json").out);
    ASSERT_EQ(found["plans"].size(), 3u);
    double before = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const Json& plan = found["plans"][i];
      EXPECT_EQ(plan["rank"], i + 1);
      EXPECT_GE(plan["report"]["step_time_s"].get<double>(), before);
      before = plan["report"]["step_time_s"].get<double>();
      const Json report =
          Json::parse(run_program("simulate" + search.substr(4) + flags_of(plan["plan"]) + " --json").out);
      EXPECT_EQ(without_assumed(report), plan["report"]);
      EXPECT_TRUE(report["memory"]["fits"].get<bool>());
    }
  }
}

TEST(Plan, CountsAddUp) {
  const Json found = Json::parse(run_program(std::string(kSearch) + "--json").out);
  const auto count = [&](const char* key) { return found[key].get<std::int64_t>(); };
  EXPECT_EQ(count("considered"),
            count("illegal") + count("does_not_fit") + count("pruned") + count("simulated"));
  EXPECT_EQ(count("left"), 0);
  EXPECT_GT(found["elapsed_s"].get<double>(), 0);
  EXPECT_FALSE(found["pareto"].empty());
  const Json& launch = found["plans"][0]["launch"];
  EXPECT_FALSE(launch["unsaid"].contains("megatron"));
  EXPECT_THAT(launch["unsaid"]["deepspeed"], Contains("framework"));
}

// Gathers of ZeRO-3 and expert all-to-alls share NICs, which the bounds see only in part.
constexpr const char* kContended =
    "plan --model qwen3-30b-a3b --cluster dgx-a100-80gb --gpus 32 --gbs 32 --seq 4096 --tp 1 --cp 1 --ep 8 "
    "--pp 1,2 --mbs 1 --schedule 1f1b,interleaved-1f1b --json ";

TEST(Plan, PlacesDependNeitherOnTopNorOnJobs) {
  const auto found = [](const std::string& flags) {
    Json answer = Json::parse(run_program(kContended + flags).out);
    answer.erase("elapsed_s");
    return answer;
  };
  const Json one = found("--top 1"), five = found("--top 5"), twenty = found("--top 20");
  ASSERT_EQ(five["plans"].size(), 5u);
  EXPECT_EQ(one["plans"][0], five["plans"][0]);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(five["plans"][i], twenty["plans"][i]) << i;
  EXPECT_EQ(five, found("--top 5 --jobs 1"));
  for (const Json& each : {one, five, twenty}) {
    EXPECT_EQ(each["pareto"], five["pareto"]);
    EXPECT_EQ(each["proof"]["exact"], true);
    EXPECT_EQ(each["proof"]["proven_places"], each["plans"].size());
    EXPECT_EQ(each["pareto"][0]["step_time_s"], each["plans"][0]["report"]["step_time_s"]);
  }
}

TEST(Plan, SaysHowFarItsListIsProven) {
  const std::string all = "plan --model llama3-8b --cluster dgx-h100 --gpus 8 --gbs 8 --seq 4096 --tp 8 ";
  EXPECT_THAT(run_program(all + "--top 1").out, HasSubstr("no other can be among the first 1"));
  EXPECT_THAT(run_program(all + "--top 1000").out,
              AllOf(HasSubstr("exact: "), HasSubstr("no other plan fits")));
  EXPECT_THAT(run_program(all + "--top 1 --engine reference").out, HasSubstr("run by the reference engine"));
  const Json by_cost = Json::parse(run_program(all + "--top 1 --layers-per-stage auto --json").out);
  EXPECT_EQ(by_cost["proof"]["exact"], false);
  EXPECT_EQ(by_cost["proof"]["proven_places"], 0);
  const Json late = Json::parse(run_program(all + "--time-limit 0.001 --json").out);
  EXPECT_EQ(late["proof"]["stopped_by"], "time limit");
  EXPECT_EQ(late["proof"]["proven_places"], 0);
  EXPECT_GT(late["left"], 0);
}

TEST(Plan, ShowsTheMemoryThatDecides) {
  const Json found = Json::parse(run_program(std::string(kSearch) + "--top 1 --json").out);
  const Json& first = found["plans"][0]["report"]["memory"];
  EXPECT_EQ(found["pareto"][0]["needed_bytes"], first["needed_bytes"]);
  const std::string text = run_program(std::string(kSearch) + "--top 1").out;
  EXPECT_THAT(text, HasSubstr("total memory"));
  EXPECT_THAT(text, HasSubstr(" " + format_bytes(first["needed_bytes"].get<double>()) + "\n"));
}

TEST(Plan, FlagsAndListsNarrowTheSearch) {
  const Json found = Json::parse(
      run_program(std::string(kSearch) + "--tp 4,8 --pp 2 --schedule 1f1b --recompute full --top 50 --json")
          .out);
  for (const Json& plan : found["plans"]) {
    EXPECT_TRUE(plan["plan"]["tp"] == 4 || plan["plan"]["tp"] == 8);
    EXPECT_EQ(plan["plan"]["pp"], 2);
    EXPECT_EQ(plan["plan"]["schedule"], "1f1b");
    EXPECT_EQ(plan["plan"]["recompute"], "full");
    EXPECT_THAT(plan["launch"]["megatron"].get<std::string>(), HasSubstr("--pipeline-model-parallel-size 2"));
  }
}

// Without expert parallelism no library dispatches tokens. With it, a library dispatches whole rows.
TEST(Plan, TakesADispatcherWhereRowsAreSent) {
  const std::string search =
      "plan --model qwen3-30b-a3b --cluster dgx-h200 --gpus 16 --gbs 64 --seq 4096 --zero 1 --pp 1 --cp 1 "
      "--mbs 1 --recompute none --moe-dispatcher hybridep --moe-dispatcher-sms 32 ";
  const Json found =
      Json::parse(run_program(search + "--ep 1,16 --tp 2,8 --top 9 --engine reference --json").out);
  EXPECT_EQ(found["illegal"], 0);
  EXPECT_EQ(found["considered"], 4);
  EXPECT_FALSE(found["plans"].empty());
  for (const Json& plan : found["plans"]) {
    const bool sends = plan["plan"]["ep"] == 16;
    EXPECT_EQ(plan["report"]["plan"]["moe_dispatcher"], sends ? "hybridep" : "alltoall");
    EXPECT_EQ(plan["report"]["plan"]["moe_dispatcher_sms"], sends ? 32 : 0);
    EXPECT_EQ(plan["report"]["plan"]["etp"], sends ? Json(1) : plan["plan"]["tp"]);
  }
}

TEST(Plan, TextTellsWhyTheFirstWinsAndHowToLaunchIt) {
  const Outcome outcome = run_program(std::string(kSearch) + "--top 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"Critical path of plan 1: compute", "2 is ", "Fastest plan at each memory size",
                            "--tensor-model-parallel-size", "plans considered", "torchtitan"})
    EXPECT_THAT(outcome.out, HasSubstr(words));
  EXPECT_THAT(run_program(std::string(kSearch) + "--top 2 --zero 2").out,
              HasSubstr("torchtitan (cannot express this plan's recipe"));
}

TEST(Plan, SearchesWhatAScenarioFileFixes) {
  const Outcome outcome = run_program(
      "plan scenarios/llama3-70b-512-h100.json --engine reference --schedule 1f1b --recompute none --zero 0 "
      "--json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(Json::parse(outcome.out)["considered"].get<int>(), 10);
}

TEST(Plan, WithoutAPlanThatFitsItExitsWithThree) {
  const Outcome outcome =
      run_program("plan --model llama3.1-405b --cluster dgx-h100 --gpus 8 --gbs 8 --seq 8192");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("no plan fits"));
  const Outcome json =
      run_program("plan --model llama3.1-405b --cluster dgx-h100 --gpus 8 --gbs 8 --seq 8192 --json");
  EXPECT_EQ(json.exit_code, 3);
  const Json found = Json::parse(json.out);
  EXPECT_TRUE(found["plans"].empty());
  EXPECT_EQ(found["considered"], found["illegal"].get<int>() + found["does_not_fit"].get<int>());
}

TEST(Plan, WithoutALegalPlanNamesTheRuleAndExitsWithTwo) {
  const std::string common = "plan --model llama3-8b --cluster dgx-h100 --gpus 8 ";
  for (const auto& [flags, rule] : {std::pair{"--gbs 8 --tp 3", "--tp: tp must divide the attention heads"},
                                    {"--gbs 7 --mbs 2", "--gbs: the global batch must be a multiple"},
                                    {"--gbs 8 --pp 2 --schedule zb-h1 --vpp 2", "vpp"}}) {
    const Outcome outcome = run_program(common + flags);
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(rule), HasSubstr("nearest legal"))) << flags;
  }
}

TEST(Plan, WhatIsMissingOrNotSearchedIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"plan --model gpt2 --cluster dgx-h100 --gpus 8", "--gbs"},
      {"plan --model gpt2 --cluster dgx-h100 --gbs 8", "--gpus"},
      {"plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 8,16", "is not searched"},
      {"plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 8 --schedule 1f2b", "--schedule"},
      {"plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 8 --top 0", "--top"},
      {"plan --model nothing --cluster dgx-h100 --gpus 8 --gbs 8", "nothing"}};
  for (const auto& [command, words] : cases) {
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.exit_code, 2) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << command;
  }
}

}  // namespace
}  // namespace rehearse
