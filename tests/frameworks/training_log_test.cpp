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
