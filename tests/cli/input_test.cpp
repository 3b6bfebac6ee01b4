// Sources of input: pipes as well as files, and the program's own output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"
#include "scratch.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(Input, IsReadFromPipes) {
  const std::string file = temporary_file("piped.json", R"({"model": "gpt2", "cluster": "dgx-h100", "gpus": 2,
      "plan": {"tp": 2, "global_batch": 4, "seq": 1024}})");
  const std::string expected = run_program("simulate " + file + " --json").out;
  ASSERT_THAT(expected, HasSubstr("step_time_s"));
  const std::string store = " --store " + scratch().file("piped.db");
  for (const std::string& script :
       std::vector<std::string>{"$R simulate - --json <" + file, "cat " + file + " | $R simulate - --json",
                                "(sleep 0.2; cat " + file + ") | $R simulate /dev/stdin --json",
                                "$R simulate <(cat " + file + ") --json",
                                "$R simulate --json " + file +
                                    " --cluster <(cat topologies/dgx-h100.json) --profile <(cat "
                                    "calibrate/profiles/h100-sxm.json)"}) {
    const Outcome outcome = run_in_bash(script);
    EXPECT_EQ(outcome.exit_code, 0) << script << outcome.err;
    const bool is_renamed = script.find("--cluster") != std::string::npos;
    EXPECT_TRUE(is_renamed || outcome.out == expected) << script << outcome.out;
  }
  for (const std::string& script : std::vector<std::string>{
           "$R check - <" + file, "$R sweep - --mbs 1,2 <" + file + store, "$R memory <(cat " + file + ")",
           "$R compare <($R simulate " + file + " --json) <($R simulate " + file + " --json)",
           "$R simulate " + file + " --json | $R compare - -",
           "printf %s \"--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --swiglu "
           "--vocab-size 32000 --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 "
           "--tokenizer-type NullTokenizer\" | $R import megatron - --model llama3-8b --cluster dgx-h100 "
           "--gpus 8"}) {
    const Outcome outcome = run_in_bash(script);
    EXPECT_EQ(outcome.exit_code, 0) << script << outcome.err;
  }
}

TEST(Input, FromAPipeThatSaysNothingIsRefused) {
  for (const char* script :
       {"$R simulate - </dev/null", "$R simulate <(true)", "$R compare <(true) <(true)"}) {
    const Outcome outcome = run_in_bash(script);
    EXPECT_EQ(outcome.exit_code, 2) << script << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("not valid JSON")) << script;
  }
}

TEST(Input, MayBeThePlanOfAReport) {
  const std::string run = "--model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096 ";
  const auto again = [](const Json& plan) {
    const Json scenario = {{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"gpus", 16}, {"plan", plan}};
    return Json::parse(run_program("simulate --json " + temporary_file("again.json", scenario.dump())).out);
  };
  const Json report = Json::parse(run_program("simulate --json --tp 4 --pp 2 " + run).out);
  EXPECT_EQ(again(report["plan"])["step_time_s"], report["step_time_s"]);
  const Json plans = Json::parse(run_program("plan --json --top 2 " + run).out)["plans"];
  ASSERT_EQ(plans.size(), 2U);
  for (const Json& each : plans)
    EXPECT_EQ(again(each["plan"])["step_time_s"], each["report"]["step_time_s"]) << each["plan"].dump();
  Json wrong = report["plan"];
  wrong["microbatches"] = 5;
  const std::string file = temporary_file(
      "wrong.json",
      Json{{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"gpus", 16}, {"plan", wrong}}.dump());
  const Outcome outcome = run_program("check " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/plan/microbatches"));
  EXPECT_EQ(run_program("check --gbs 128 " + file).exit_code, 0) << "the flag says another batch";
}

}  // namespace
}  // namespace rehearse
