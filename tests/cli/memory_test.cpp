#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kScenario = "scenarios/llama3-70b-512-h100.json";

TEST(MemoryVerb, IsTheMemoryOfTheReport) {
  const Json memory = Json::parse(run_program("memory " + kScenario + " --json").out);
  const Json report = Json::parse(run_program("simulate " + kScenario + " --engine reference --json").out);
  EXPECT_EQ(memory["ranks"], report["memory"]["ranks"]);
  EXPECT_EQ(memory["bytes_per_parameter"], 18);
  EXPECT_LE(memory["fewest_gpus"]["peak_bytes"], memory["capacity_bytes"]);
}

TEST(MemoryVerb, ExitsWithThreeWhenItDoesNotFit) {
  const std::string plan = "memory --model llama2-70b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8";
  EXPECT_EQ(run_program(plan).exit_code, 3);
  EXPECT_EQ(run_program("memory " + kScenario).exit_code, 0);
}

TEST(MemoryVerb, RecomputeFlagsOfMegatronChangeIt) {
  const auto peak = [](const std::string& flags) {
    return Json::parse(run_program("memory " + kScenario + " --json " + flags).out)["peak_bytes"]
        .get<double>();
  };
  const double none = peak("");
  const double block = peak("--recompute full --recompute-method block --recompute-num-layers 2");
  const double uniform = peak("--recompute full --recompute-method uniform --recompute-num-layers 1");
  EXPECT_LT(peak("--recompute selective --recompute-modules core_attn,mlp,layernorm"), none);
  EXPECT_LT(block, none);
  EXPECT_LT(uniform, block);
  EXPECT_GT(peak("--recipe sagemaker"), none);
  EXPECT_EQ(run_program("memory " + kScenario + " --recompute selective --recompute-modules moon").exit_code,
            2);
  EXPECT_EQ(run_program("memory " + kScenario + " --recompute-num-layers 2").exit_code, 2);
}

// Outside the allocator, the one GPU needs only its CUDA context, which depends on the kind of GPU.
TEST(MemoryVerb, SizesMixedNodesByThoseOfTheFullestRank) {
  const auto context_of_fewest = [](const std::string& nodes) {
    const Json fewest =
        Json::parse(run_program("memory --model gpt2 --cluster dgx-h100 --gpus 16 --tp 4 --pp 2 "
                                "--gbs 8 --json --stage-nodes " +
                                nodes)
                        .out)["fewest_gpus"];
    EXPECT_EQ(fewest["gpus"], 1);
    return fewest["needed_bytes"].get<double>() - fewest["peak_bytes"].get<double>();
  };
  EXPECT_EQ(context_of_fewest("2*dgx-h100"), 1.06e9);
  EXPECT_EQ(context_of_fewest("2*dgx-a100-80gb"), 1343.0 * (1 << 20));
}

TEST(ExplainVerb, ListsAndExplainsTopics) {
  EXPECT_THAT(run_program("explain").out, HasSubstr("bubble"));
  const Outcome outcome = run_program("explain batch " + kScenario);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1024 = 1 x 64 x 16 sequences"));
  EXPECT_EQ(run_program("explain moon " + kScenario).exit_code, 2);
}

}  // namespace
}  // namespace rehearse
