// Logs as the frameworks print them; data/README.md names the formats.
#include "frameworks/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace rehearse {
namespace {

constexpr double kMib = 1024.0 * 1024, kGib = 1024 * kMib;

TrainingLog log_named(const std::string& name) {
  const std::string path = std::string(SOURCE_DIR) + "/tests/frameworks/data/" + name;
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return read_training_log(text.str(), path);
}

TEST(TrainingLog, OfMegatronHasTimesThroughputAndAllocatedMemory) {
  const TrainingLog log = log_named("megatron.log");
  EXPECT_EQ(log.framework, "Megatron-LM");
  ASSERT_EQ(log.steps.size(), 4u);
  EXPECT_EQ(log.steps[2].step, 3);
  EXPECT_DOUBLE_EQ(*log.steps[2].step_time_s, 11.9);
  EXPECT_EQ(log.global_batch, 1024);
  EXPECT_DOUBLE_EQ(*log.peak_memory_bytes, 41000.25 * kMib);
  EXPECT_FALSE(log.memory_is_reserved);
  const LoggedStep median = median_step(log, 1, "log");
  EXPECT_DOUBLE_EQ(*median.step_time_s, 12.0);
  EXPECT_DOUBLE_EQ(*median.tflops_per_gpu, 333);
  EXPECT_DOUBLE_EQ(*median.samples_per_s, 1024 / 12.0);
}

TEST(TrainingLog, OfDeepSpeedHasItsCurrentRate) {
  const TrainingLog log = log_named("deepspeed.log");
  EXPECT_EQ(log.framework, "DeepSpeed");
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[1].step, 20);
  EXPECT_DOUBLE_EQ(*log.peak_memory_bytes, 21.5 * kGib);
  EXPECT_DOUBLE_EQ(*median_step(log, 1, "log").samples_per_s, 41);
}

TEST(TrainingLog, OfDeepSpeedsPipelineEngineHasTimes) {
  const TrainingLog log =
      read_training_log("steps: 10 loss: 2.1000 iter time (s): 1.250 samples/sec: 102.400\n", "log");
  EXPECT_DOUBLE_EQ(*log.steps.at(0).step_time_s, 1.25);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).samples_per_s, 102.4);
  EXPECT_EQ(log.steps.at(0).step, 10);
}

TEST(TrainingLog, OfTorchtitanIsReadThroughItsColours) {
  const TrainingLog log = log_named("torchtitan.log");
  EXPECT_EQ(log.framework, "torchtitan");
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[1].step, 10);
  EXPECT_DOUBLE_EQ(*log.steps[1].tokens_per_s_per_gpu, 2793);
  EXPECT_DOUBLE_EQ(*log.steps[1].tflops_per_gpu, 161.76);
  EXPECT_DOUBLE_EQ(*log.peak_memory_bytes, 47.5 * kGib);
  EXPECT_TRUE(log.memory_is_reserved);
}

TEST(TrainingLog, OfMegatronBridgeHasTheUtilisationOfItsOwnLine) {
  const TrainingLog log = log_named("nemo_bridge_util.log");
  ASSERT_EQ(log.steps.size(), 5u);
  const LoggedStep median = median_step(log, 1, "log");
  EXPECT_DOUBLE_EQ(*median.tflops_per_gpu, 745.2);
  EXPECT_NEAR(*median.step_time_s, 2.02825, 1e-9);
  EXPECT_EQ(log.global_batch, 128);
}

TEST(TrainingLog, OfNemoHasTimesAndTheGlobalBatch) {
  const TrainingLog log = log_named("nemo2.log");
  EXPECT_EQ(log.framework, "NeMo");
  EXPECT_NEAR(*median_step(log, 0, "log").step_time_s, 46.85, 1e-9);
  EXPECT_EQ(log.global_batch, 512);
  EXPECT_EQ(log.steps.at(1).step, 29);
  // NeMo 1: a progress bar that returns to the line's begin.
  const TrainingLog bar = read_training_log(
      "Epoch 0: : 1%| 1/100 [00:05, global_step=1.000, train_step_timing in s=3.250]\r"
      "Epoch 0: : 2%| 2/100 [00:08, global_step=2.000, train_step_timing in s=3.130]\n",
      "log");
  ASSERT_EQ(bar.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(*bar.steps[1].step_time_s, 3.13);
}

TEST(TrainingLog, OfNanotronReadsShortenedNumbers) {
  const TrainingLog log = log_named("nanotron.log");
  EXPECT_EQ(log.framework, "nanotron");
  const LoggedStep median = median_step(log, 0, "log");
  EXPECT_DOUBLE_EQ(*median.step_time_s, 11.5);
  EXPECT_DOUBLE_EQ(*median.tokens_per_s_per_gpu, 11400);
  EXPECT_DOUBLE_EQ(*median.tflops_per_gpu, 38.3);
  EXPECT_EQ(log.global_batch, 64);
  EXPECT_EQ(log.gpus, 2) << "22.8K tokens/s, 11.4K of each GPU";
  EXPECT_EQ(log.steps.at(0).step, 327280);
}

TEST(TrainingLog, OfTransformersHasTheRatesOfTheWholeRun) {
  const TrainingLog log = log_named("hf_trainer.log");
  EXPECT_EQ(log.framework, "transformers");
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(*log.steps[0].samples_per_s, 12.5);
  EXPECT_DOUBLE_EQ(*log.steps[0].step_time_s, 1 / 0.098);
}

TEST(TrainingLog, OfLlmFoundryGathersAStepFromItsLines) {
  const TrainingLog log = log_named("llm_foundry.log");
  EXPECT_EQ(log.framework, "llm-foundry");
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 100);
  EXPECT_DOUBLE_EQ(*log.steps[0].samples_per_s, 240.1);
  EXPECT_DOUBLE_EQ(*log.steps[0].step_time_s, 1 / 0.2345);
  EXPECT_DOUBLE_EQ(*log.steps[0].tokens_per_s_per_gpu, 7684);
}

TEST(TrainingLog, ReadsALineOfEachOtherFramework) {
  const auto step = [](const std::string& text) { return read_training_log(text, "log").steps.at(0); };
  EXPECT_DOUBLE_EQ(
      *step("completed step: 9, seconds: 15.516, TFLOP/s/device: 257.9, Tokens/s/device: 46012.2, "
            "total_weights: 8, loss: 1\n")
           .step_time_s,
      15.516);
  EXPECT_DOUBLE_EQ(*step("iter 1631: loss 4.0863, time 561.94ms, mfu 40.10%\n").step_time_s, 0.56194);
  EXPECT_DOUBLE_EQ(*step("[step=10/100,epoch=1]\n    throughput/device/TPS=46,012\n").tokens_per_s_per_gpu,
                   46012);
  EXPECT_DOUBLE_EQ(*step("current step time: 2.05\ncurrent token per gpu per sec: 3990\n").step_time_s, 2.05);
  EXPECT_DOUBLE_EQ(
      *step("tflops=189.3 step=10 loss=2.1 tgs (tokens/gpu/second)=4069.8\n").tokens_per_s_per_gpu, 4069.8);
  EXPECT_DOUBLE_EQ(
      *step("step 10 | epoch 0 | loss 2.1 | mem 20.5 GiB | tps 46012.30(5751.53/gpu)\n").tokens_per_s_per_gpu,
      5751.53);
  EXPECT_DOUBLE_EQ(*step("Step 3 | loss:1.2 lr:2e-5 tokens_per_second_per_gpu:2411.5\n").tokens_per_s_per_gpu,
                   2411.5);
  EXPECT_DOUBLE_EQ(
      *step("iteration 5/ 100 | elapsed time per iteration (s): 104.7 | samples per second: 19.6 | "
            "TFLOPs: 150.3 |\n")
           .tflops_per_gpu,
      150.3);
}

TEST(TrainingLog, TakesTheStepsOfItsLastGlobalBatch) {
  std::string text;
  for (const char* line : {"1000.0 | global batch size: 32", "1000.0 | global batch size: 32",
                           "4000.0 | global batch size: 128", "4200.0 | global batch size: 128"})
    text += std::string(" iteration 1/ 10 | elapsed time per iteration (ms): ") + line + " |\n";
  const TrainingLog log = read_training_log(text, "log");
  EXPECT_EQ(log.global_batch, 128);
  EXPECT_DOUBLE_EQ(*median_step(log, 0, "log").step_time_s, 4.1);
}

TEST(TrainingLog, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  const TrainingLog log = log_named("megatron.log");
  EXPECT_DOUBLE_EQ(*median_step(log, 0, "log").step_time_s, (12.0 + 12.1) / 2);
}

TEST(TrainingLog, RefusesOtherTextsAndTooLongAWarmUp) {
  EXPECT_THROW(read_training_log("", "log"), InputError);
  EXPECT_THROW(read_training_log("epoch 1: loss 2.3\ntps: none\n", "log"), InputError);
  try {
    median_step(log_named("deepspeed.log"), 3, "my.log");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--warmup 2"));
  }
}

}  // namespace
}  // namespace rehearse
