// Every scenario that ships runs, and a flag beats the file.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using Json = nlohmann::json;

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SOURCE_DIR) + "/scenarios")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  return names;
}

class Scenario : public ::testing::TestWithParam<std::string> {};

TEST_P(Scenario, IsLegalFitsAndRuns) {
  const std::string file = "scenarios/" + GetParam() + ".json";
  const Outcome checked = run_program("check " + file);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const Outcome simulated = run_program("simulate " + file + " --json");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  const Json report = Json::parse(simulated.out);
  EXPECT_EQ(report["schema"], "rehearse.report/1");
  EXPECT_GT(report["step_time_s"], 0);
  EXPECT_TRUE(report["memory"]["fits"]);
}

INSTANTIATE_TEST_SUITE_P(Shipped, Scenario, ::testing::ValuesIn(shipped()), [](const auto& scenario) {
  std::string name = scenario.param;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
});

TEST(Scenario, AFlagBeatsTheFile) {
  const std::string file = "simulate scenarios/llama3-70b-512-h100.json --json";
  const Json from_file = Json::parse(run_program(file).out);
  const Json from_flag = Json::parse(run_program(file + " --seq-length 4096").out);
  EXPECT_EQ(from_file["plan"]["seq"], 8192);
  EXPECT_EQ(from_flag["plan"]["seq"], 4096);
  EXPECT_LT(from_flag["step_time_s"], from_file["step_time_s"]);
}

// The time goes where it is spent on the critical path, whichever rank ends last.
TEST(Scenario, ExpertsSetThePaceOfDeepseek) {
  const std::string job = "simulate scenarios/deepseek-v3-1024-h100-ep64.json --json --cluster ";
  const auto cluster_with = [](int nics) {
    return temporary_file("nics.json",
                          R"({"schema":"rehearse.cluster/1","like":"dgx-h100","source":"test",)"
                          R"("node":{"nics":{"count":)" +
                              std::to_string(nics) +
                              R"(,"kind":"infiniband","bandwidth":"400Gbps","latency":"3.3us"}}})");
  };
  const Json eight = Json::parse(run_program(job + cluster_with(8)).out),
             four = Json::parse(run_program(job + cluster_with(4)).out);
  const auto part = [](const Json& report, const char* key) { return report["time_s"][key].get<double>(); };
  const double longer_s = four["step_time_s"].get<double>() - eight["step_time_s"].get<double>();
  for (const char* other : {"exposed_tp", "exposed_pp", "exposed_dp", "exposed_cp", "exposed_offload"})
    EXPECT_GT(part(eight, "exposed_ep"), 10 * part(eight, other)) << other;
  EXPECT_GT(part(eight, "exposed_ep"), 0.45 * eight["step_time_s"].get<double>());
  EXPECT_EQ(part(eight, "bubble"), 0);
  EXPECT_GT(longer_s, 1);
  EXPECT_GT(part(four, "exposed_ep") - part(eight, "exposed_ep"), 0.9 * longer_s);
}

// A slow GPU computes longer; its messages are no slower.
TEST(Scenario, TheTimeLostOnASlowGpuIsCompute) {
  for (const char* engine : {"simgrid", "reference"}) {
    const std::string job =
        std::string("simulate scenarios/llama3-70b-512-h100.json --json --engine ") + engine;
    const Json even = Json::parse(run_program(job).out),
               slow = Json::parse(run_program(job + " --slow rank=17:0.8").out);
    const double lost_s = slow["step_time_s"].get<double>() - even["step_time_s"].get<double>();
    const auto longer_s = [&](const char* key) {
      return slow["time_s"][key].get<double>() - even["time_s"][key].get<double>();
    };
    EXPECT_GT(lost_s, 1);
    EXPECT_GT(longer_s("compute"), 0.95 * lost_s) << engine;
    EXPECT_LT(std::abs(longer_s("exposed_tp")), 0.05 * lost_s) << engine;
  }
}

TEST(Scenario, PairsPassesAsMegatronDoes) {
  const std::string job =
      "simulate --model qwen3-30b-a3b --cluster dgx-h100 --gpus 16 --ep 8 --gbs 64 --seq 1024 --json ";
  const Json apart = Json::parse(run_program(job).out),
             paired = Json::parse(run_program(job + "--overlap-moe-expert-parallel-comm on").out);
  EXPECT_EQ(paired["plan"]["overlap_experts"], true);
  EXPECT_LT(paired["time_s"]["exposed_ep"], 0.9 * apart["time_s"]["exposed_ep"].get<double>());
  EXPECT_LT(paired["step_time_s"], apart["step_time_s"]);
  const Outcome refused = run_program(job + "--pp 2 --overlap-experts on");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overlap-experts: overlap of experts needs interleaved-1f1b"),
            std::string::npos)
      << refused.err;
}

// 256 GPUs in blocks of 64: no expert-parallel group of 32 leaves its NVLink domain.
TEST(Scenario, SharesNvlinkDomainsOutEvenly) {
  const std::string job =
      "simulate --model qwen3-30b-a3b --cluster gb200-nvl72 --gpus 256 --ep 32 --gbs 256 --seq 1024 --json";
  const auto exposed = [](const Outcome& run) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Json::parse(run.out)["time_s"]["exposed_ep"].get<double>();
  };
  const Outcome even = run_program(job), filled = run_program(job + " --gpus-per-node 72");
  EXPECT_LT(2 * exposed(even), exposed(filled));
  EXPECT_EQ(exposed(even), exposed(run_program(job + " --gpus-per-node 64")));
  const Outcome refused = run_program(job + " --gpus-per-node 30");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("28 or 32"), std::string::npos) << refused.err;
}

TEST(Scenario, NamesInternEvoAsTheFlagDoes) {
  const std::string small = "simulate --model llama2-7b --cluster dgx-a100-80gb --gpus 16 --gbs 64 --json ";
  const Outcome flags = run_program(small + "--framework internevo --zero 1");
  ASSERT_EQ(flags.exit_code, 0) << flags.err;
  const Json report = Json::parse(flags.out);
  EXPECT_EQ(report["plan"]["framework"], "internevo");
  const std::string file =
      temporary_file("internevo.json", R"({"model": "llama2-7b", "cluster": "dgx-a100-80gb", "gpus": 16,
                            "plan": {"framework": "internevo", "zero": 1, "global_batch": 64}})");
  EXPECT_EQ(Json::parse(run_program("simulate --json " + file).out), report);
  const Outcome wrong = run_program(small + "--framework internlm");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("internevo"), std::string::npos) << wrong.err;
}

TEST(Scenario, AHostThatWaitsOverlapsNothingUnlessToldTo) {
  const std::string run =
      "simulate --model llama2-7b --cluster dgx-a100-80gb --gpus 16 --tp 4 --dp 2 --pp 2 --gbs 16 --json ";
  const Json ahead = Json::parse(run_program(run).out);
  const Json waits = Json::parse(run_program(run + "--launch-blocking on").out);
  for (const char* overlap : {"overlap_grad_reduce", "overlap_p2p", "tp_backward_overlap"})
    EXPECT_EQ(waits["plan"][overlap], false);
  EXPECT_GT(waits["step_time_s"], ahead["step_time_s"]);
  EXPECT_NE(waits["warnings"].dump().find("--launch-blocking off"), std::string::npos) << waits["warnings"];
  const Outcome both = run_program(run + "--launch-blocking on --overlap-grad-reduce on");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("overlap_grad_reduce is on"), std::string::npos) << both.err;
}

// An A100 has 108 multiprocessors.
TEST(Scenario, AProductKeepsAMultiprocessor) {
  const std::string run =
      "simulate --model llama2-7b --cluster dgx-a100-80gb --gpus 8 --tp 8 --gbs 8 --sequence-parallel on "
      "--tp-comm-overlap on --json --tp-comm-fc2-sms ";
  EXPECT_LT(Json::parse(run_program(run + "0").out)["step_time_s"],
            Json::parse(run_program(run + "107").out)["step_time_s"]);
  const Outcome all = run_program(run + "108");
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_NE(all.err.find("from 0 to 107"), std::string::npos) << all.err;
}

// A layer is 202.4 M multiplications, and the head is 0.65 of a layer: 32.65 layers in all.
TEST(Scenario, NanotronSplitsLayersAtSharesUnlessTold) {
  const std::string run =
      "simulate --model llama2-7b --cluster dgx-a100-80gb --gpus 16 --pp 4 --gbs 64 --json --framework "
      "nanotron ";
  const auto layers = [](const std::string& arguments) {
    return Json::parse(run_program(arguments).out)["plan"]["layers_per_stage"];
  };
  EXPECT_EQ(layers(run), Json({9, 8, 8, 7}));
  EXPECT_EQ(layers(run + "--layers-per-stage 8,8,8,8"), Json({8, 8, 8, 8}));
}

TEST(Scenario, ModelPathsAreRelativeToTheScenario) {
  const std::string model = temporary_file("tiny.json", R"({"model_type": "llama", "hidden_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 1000,
      "num_key_value_heads": 4, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu"})");
  const std::string file = temporary_file(
      "tiny-scenario.json", R"({"model": "tiny.json", "cluster": "dgx-h100", "plan": {"global_batch": 4}})");
  const Outcome outcome = run_program("simulate " + file + " --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["model"]["layers"], 2);
}

TEST(Scenario, TheSameInputGivesTheSameBytes) {
  const std::string picture = temporary_file("a.svg", ""), trace = temporary_file("a.json", "");
  const std::string command =
      "simulate scenarios/llama3-70b-512-h100.json --gbs 128 --svg /dev/stdout --trace " + trace;
  const Outcome first = run_program(command);
  const Outcome second = run_program(command);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
}

}  // namespace
}  // namespace rehearse
