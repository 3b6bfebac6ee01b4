// Executing from the command line: a real step, and clear ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kSmall = "execute scenarios/gpt-10m-2-cores.json --seq 16 --mbs 1 --gbs 4 ";

TEST(Execute, ReportsWhatSimulateReports) {
  const Outcome executed = run_program(kSmall + "--iterations 3 --warmup 1 --json");
  ASSERT_EQ(executed.exit_code, 0) << executed.err;
  const Json found = Json::parse(executed.out);
  EXPECT_EQ(found["source"], "execute");
  EXPECT_EQ(found["engine"], "cpu");
  EXPECT_GT(found["step_time_s"].get<double>(), 0);
  EXPECT_EQ(found["execution"]["losses"].size(), 4U);
  EXPECT_EQ(found["execution"]["step_times_s"].size(), 3U);
  const Json simulated = without_assumed(
      Json::parse(run_program("simulate scenarios/gpt-10m-2-cores.json --seq 16 --mbs 1 --gbs 4 --json").out));
  for (const auto& [key, value] : simulated.items()) EXPECT_TRUE(found.contains(key)) << key;
  double sum = 0;
  for (const auto& [key, seconds] : found["time_s"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, found["step_time_s"].get<double>(), 1e-6);
}

TEST(Execute, TrainsTheSameWhateverTheSplit) {
  const std::string model = temporary_file("small_gpt.json", R"({
    "model_type": "gpt2", "activation_function": "gelu_new", "n_layer": 4, "n_embd": 64, "n_head": 4,
    "n_positions": 64, "vocab_size": 128, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})");
  const auto losses = [&](const std::string& flags) {
    const Outcome outcome =
        run_program(kSmall + "--iterations 2 --warmup 0 --json --model " + model + " " + flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out)["execution"]["losses"].get<std::vector<double>>();
  };
  const std::vector<double> one = losses("--pp 1 --gpus 1"), two = losses("--pp 1 --tp 2");
  EXPECT_NEAR(one.front(), two.front(), 1e-5 * one.front());
  EXPECT_NEAR(one.back(), two.back(), 1e-5 * one.back());
}

// gpt-10m has dropout.
TEST(Execute, ReadsTheSameGlobalBatchWhateverTheMicrobatch) {
  const std::string text = temporary_file("text", std::string(500, 'a') + std::string(500, 'b'));
  for (const std::string& data : {std::string(), "--data " + text}) {
    std::vector<double> first;
    for (const char* split :
         {"--mbs 1", "--mbs 2", "--mbs 4", "--pp 1 --dp 2 --mbs 1", "--pp 1 --dp 2 --mbs 2"}) {
      const Outcome outcome = run_program(
          "execute scenarios/gpt-10m-2-cores.json --seq 16 --gbs 4 --iterations 1 --warmup 1 --json " +
          std::string(split) + " " + data);
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const auto losses = Json::parse(outcome.out)["execution"]["losses"].get<std::vector<double>>();
      if (first.empty()) first = losses;
      EXPECT_NEAR(losses[0], first[0], 1e-6 * first[0]) << split;
      EXPECT_NEAR(losses[1], first[1], 1e-5 * first[1]) << split;
    }
  }
}

TEST(Execute, TrainsOnATextAndSaysSo) {
  const std::string text = temporary_file("text", std::string(50, 'a') + std::string(50, 'b'));
  const Outcome outcome = run_program(kSmall + "--iterations 1 --warmup 0 --json --data " + text);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out)["execution"]["data"]["tokens"], 100);
  const Outcome missing = run_program(kSmall + "--data %/no/such/text");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no/such/text"));
}

TEST(Execute, ClipsAndReportsTheNorm) {
  const Outcome outcome = run_program(kSmall + "--iterations 2 --warmup 0 --json --clip-grad 1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  EXPECT_EQ(found["plan"]["clip_grad"], 1.0);
  for (const Json& norm : found["execution"]["gradient_norms"]) EXPECT_GT(norm.get<double>(), 0);
  EXPECT_EQ(run_program(kSmall + "--clip-grad 1 --sync-step off").exit_code, 2);
}

TEST(Execute, EmulatesBf16OnTheCpuAndSaysSo) {
  const Outcome outcome = run_program(kSmall + "--precision bf16 --iterations 2 --warmup 0 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  EXPECT_EQ(found["plan"]["precision"], "bf16");
  EXPECT_THAT(found["warnings"].dump(), HasSubstr("the CPU emulates bf16"));
  const Json wide = Json::parse(run_program(kSmall + "--iterations 2 --warmup 0 --json").out);
  EXPECT_THAT(wide["warnings"].dump(), Not(HasSubstr("emulates")));
  const auto first_peak = [](const Json& report) {
    return report["execution"]["peak_activation_bytes_by_rank"][0].get<double>();
  };
  EXPECT_LT(first_peak(found), 0.6 * first_peak(wide));
  const double loss = wide["execution"]["losses"][1];
  EXPECT_NEAR(found["execution"]["losses"][1].get<double>(), loss, 0x1p-8 * loss);
  const Outcome predicted = run_program(kSmall + "--precision bf16 --predict");
  EXPECT_EQ(predicted.exit_code, 2);
  EXPECT_THAT(predicted.err, AllOf(HasSubstr("--predict"), HasSubstr("emulates"), HasSubstr("fp32")));
}

TEST(Execute, ScalesTheLossOfFp16AndReportsHow) {
  const std::string fp16 = kSmall + "--precision fp16 --iterations 2 --warmup 1 ";
  const Outcome fits = run_program(fp16 + "--json --initial-loss-scale 65536");
  ASSERT_EQ(fits.exit_code, 0) << fits.err;
  const Json found = Json::parse(fits.out);
  EXPECT_EQ(found["plan"]["precision"], "fp16");
  EXPECT_EQ(found["execution"]["loss_scales"], Json({65536, 65536, 65536}));
  EXPECT_EQ(found["execution"]["skipped_steps"], Json::array());
  EXPECT_THAT(found["warnings"].dump(), AllOf(HasSubstr("the CPU emulates fp16"), Not(HasSubstr("skipped"))));
  const Json wide = Json::parse(run_program(kSmall + "--iterations 2 --warmup 1 --json").out);
  const double loss = wide["execution"]["losses"][2];
  EXPECT_NEAR(found["execution"]["losses"][2].get<double>(), loss, 0x1p-11 * loss);
  EXPECT_FALSE(wide["execution"].contains("loss_scales"));

  const Outcome static_scale = run_program(fp16 + "--loss-scale 4096");
  EXPECT_THAT(static_scale.out, HasSubstr("loss scale 4096 after the last step; 0 of 3 steps skipped"));

  const Outcome too_large = run_program(fp16 + "--json --clip-grad 1");
  ASSERT_EQ(too_large.exit_code, 0) << too_large.err;
  const Json skipped = Json::parse(too_large.out);
  EXPECT_EQ(skipped["execution"]["loss_scales"], Json({0x1p32, 0x1p31, 0x1p30}));
  EXPECT_EQ(skipped["execution"]["skipped_steps"], Json({0, 1, 2}));
  EXPECT_TRUE(skipped["execution"]["gradient_norms"][0].is_null());
  EXPECT_THAT(skipped["warnings"].dump(), AllOf(HasSubstr("2 of 2 measured steps"), HasSubstr("65536")));
}

TEST(Execute, RefusesALossScaleThatHasNoMeaning) {
  const auto refused = [](const std::string& flags) {
    const Outcome outcome = run_program(kSmall + flags);
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    return outcome.err;
  };
  EXPECT_THAT(refused("--loss-scale 8"), AllOf(HasSubstr("--loss-scale"), HasSubstr("--precision fp16")));
  EXPECT_THAT(refused("--precision fp16 --loss-scale none"), HasSubstr("nearest legal: dynamic, or 65536"));
  EXPECT_THAT(refused("--precision fp16 --loss-scale 0"), HasSubstr("inverse in fp32"));
  EXPECT_THAT(refused("--precision fp16 --loss-scale nan"), HasSubstr("nearest legal: 1"));
  EXPECT_THAT(refused("--precision fp16 --loss-scale 8 --hysteresis 3"),
              AllOf(HasSubstr("--hysteresis"), HasSubstr("--loss-scale dynamic")));
  EXPECT_THAT(refused("--precision fp16 --loss-scale-window 0"), HasSubstr("nearest legal: 1"));
  EXPECT_THAT(refused("--precision fp16 --initial-loss-scale 0.5"),
              AllOf(HasSubstr("--min-loss-scale"), HasSubstr("nearest legal: 0.5")));
  EXPECT_THAT(refused("--precision fp16 --sync-step off"), HasSubstr("--sync-step"));
}

TEST(Execute, RefusesWhatItCannotRunAndNamesTheFlag) {
  const Outcome fp8 = run_program(kSmall + "--precision fp8");
  EXPECT_EQ(fp8.exit_code, 2);
  EXPECT_THAT(fp8.err, AllOf(HasSubstr("--precision"), HasSubstr("bf16")));
  const Outcome parts = run_program(
      "execute scenarios/gpt-420m-h100-quarters.json --tp 2 --pp 2 --sequence-parallel off "
      "--scatter-gather on --device cpu");
  EXPECT_EQ(parts.exit_code, 2);
  EXPECT_THAT(parts.err, AllOf(HasSubstr("--scatter-gather"), HasSubstr("false")));
  const Outcome slow = run_program(kSmall + "--slow rank=1:0.5");
  EXPECT_EQ(slow.exit_code, 2);
  EXPECT_THAT(slow.err, HasSubstr("--slow"));
}

// Only InternEvo has its kind of ZeRO-1, and fp32 copies that its norms read. Without both, its plans train
// as others do.
TEST(Execute, RefusesWhatOnlyInternEvoDoesAndRunsTheRest) {
  const std::string fused = kSmall + "--pp 1 --swiglu-fusion on --adam-fusion on --iterations 1 --warmup 0 ";
  const std::string internevo = fused + "--framework internevo ";
  const Outcome owners = run_program(internevo + "--precision fp32 --zero 1");
  EXPECT_EQ(owners.exit_code, 2);
  EXPECT_THAT(owners.err, AllOf(HasSubstr("--framework: ranks that own whole parameters"),
                                HasSubstr("nearest legal: framework deepspeed, or zero = 0")));
  const Outcome norms = run_program(internevo + "--precision bf16");
  EXPECT_EQ(norms.exit_code, 2);
  EXPECT_THAT(norms.err, AllOf(HasSubstr("--framework: norms that read fp32 copies"),
                               HasSubstr("precision = fp32"), Not(HasSubstr("own whole parameters"))));
  const Outcome whole = run_program(internevo + "--precision fp32 --json");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const Outcome core = run_program(fused + "--precision fp32 --json");
  EXPECT_EQ(Json::parse(whole.out)["execution"]["losses"], Json::parse(core.out)["execution"]["losses"]);
}

TEST(Execute, RefusesTheCopiesThatOnlyNanotronMakes) {
  const Outcome copies = run_program(kSmall + "--swiglu-fusion on --framework nanotron");
  EXPECT_EQ(copies.exit_code, 2);
  EXPECT_THAT(copies.err, AllOf(HasSubstr("--framework: copies of the heads"),
                                HasSubstr("framework megatron-core with recipe nanotron")));
}

TEST(Execute, RunsExpertsInTurnAndSaysSo) {
  const std::string sparse = "execute scenarios/mixtral-8x10m-2-cores.json --mbs 1 --gbs 4 ";
  const Outcome executed = run_program(sparse + "--seq 16 --iterations 1 --warmup 1 --json");
  ASSERT_EQ(executed.exit_code, 0) << executed.err;
  EXPECT_THAT(executed.out, HasSubstr("routing is round-robin"));
  EXPECT_GT(Json::parse(executed.out)["communication"].size(), 1U);
  const Outcome uneven = run_program(sparse + "--seq 18");
  EXPECT_EQ(uneven.exit_code, 2);
  EXPECT_THAT(uneven.err, AllOf(HasSubstr("--seq"), HasSubstr("nearest legal: 16 or 20")));
  const Outcome loaded = run_program(sparse + "--seq 16 --moe-imbalance 2");
  EXPECT_EQ(loaded.exit_code, 2);
  EXPECT_THAT(loaded.err, AllOf(HasSubstr("--moe-imbalance"), HasSubstr("equal loads")));
}

TEST(Execute, OffloadsToTheHostAndTrainsAlike) {
  const auto run = [](const std::string& flags) {
    const Outcome outcome = run_program(with(kSmall, "--iterations 1 --warmup 1 --json " + flags));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const auto first_peak = [](const Json& report) {
    return report["execution"]["peak_activation_bytes_by_rank"][0].get<double>();
  };
  const Json kept = run("--gbs 16 --schedule gpipe"),
             offloaded = run("--gbs 16 --schedule gpipe --offload activations");
  EXPECT_EQ(offloaded["execution"]["losses"], kept["execution"]["losses"]);
  EXPECT_LT(first_peak(offloaded), 0.5 * first_peak(kept));
  EXPECT_EQ(first_peak(offloaded), offloaded["memory"]["ranks"][0]["activations_bytes"]);
  EXPECT_THAT(offloaded["communication"].dump(), HasSubstr("copy_from_host"));
  const Json stepped = run("--pp 1 --dp 2 --zero 1"),
             at_host = run("--pp 1 --dp 2 --zero 1 --offload optimizer");
  EXPECT_EQ(at_host["execution"]["losses"], stepped["execution"]["losses"]);
  EXPECT_THAT(at_host["communication"].dump(), HasSubstr("copy_to_host"));
}

TEST(Execute, SaysWhatIsMissing) {
  EXPECT_EQ(run_program(kSmall + "--device cuda").exit_code, 4);
  const Outcome large =
      run_program("execute scenarios/gpt-10m-2-cores.json --model gpt3-175b --seq 2048 --iterations 1");
  EXPECT_EQ(large.exit_code, 3);
  EXPECT_THAT(large.err, HasSubstr("this machine has"));
}

}  // namespace
}  // namespace rehearse
