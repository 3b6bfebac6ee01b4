// bf16: every plan trains as one rank in bf16 does, and that one as one in fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "same_mixed_training.h"

namespace rehearse {
namespace {

const std::vector<Recipe> kRecipesOfBf16 = {Recipe::megatron,       Recipe::zero,     Recipe::sagemaker,
                                            Recipe::deepspeed_bf16, Recipe::nanotron, Recipe::fsdp,
                                            Recipe::autocast,       Recipe::bf16};

Plan in_bf16(const Plan& plan, Recipe recipe = Recipe::megatron) {
  return in_16_bits(plan, Precision::bf16, recipe);
}

class Bf16 : public testing::TestWithParam<Mixed> {};

TEST_P(Bf16, TrainsAsOneRankInBf16Does) {
  expect_same_training_in_16_bits(GetParam().model(), GetParam().plan);
}

INSTANTIATE_TEST_SUITE_P(Some, Bf16, testing::ValuesIn(mixes(Precision::bf16, kRecipesOfBf16)),
                         [](const auto& mixed) { return name_of(mixed.param); });

// The code path of ranks on partitions of one GPU, with a CPU in its place.
TEST(Bf16DeviceCopies, TrainAsOneRankInBf16Does) {
  Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 2, 2, 2), Recipe::zero);
  plan.zero = 1;
  plan.grad_reduce = Precision::bf16;
  DeviceSet device_set;
  std::vector<kernels::Device*> devices;
  for (int rank = 0; rank < plan.gpus(); ++rank)
    devices.push_back(device_set.devices.emplace_back(kernels::open_cpu()).get());
  device_set.worlds = kernels::open_device_worlds(devices);
  const Training training = training_of(tiny_llama(), plan);
  RankPool rank_pool(training, {10, {}}, std::move(device_set));
  expect_same_training_in_16_bits(rank_pool, training);
}

// Sums of shards are those of the whole, and a shard's step is its part of the whole's.
TEST(Bf16Shards, StepAsTheWholeDoes) {
  WholeTensors expected;
  for (const int zero : {0, 1, 2, 3}) {
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 1, 2));
    plan.zero = zero;
    plan.framework = Framework::torchtitan;
    plan.reduce_each_microbatch = false;
    RankPool rank_pool(training_of(tiny_llama(), plan), {10, {}});
    for (int step = 0; step < 3; ++step) rank_pool.step();
    if (zero == 0) expected = rank_pool.master_weights();
    std::string where;
    EXPECT_EQ(largest_error(rank_pool.master_weights(), expected, where), 0)
        << "ZeRO " << zero << ": " << where;
  }
}

TEST(Bf16Weights, AreTheirMastersRounded) {
  for (const Recipe recipe : kRecipesOfBf16) {
    SCOPED_TRACE(to_string(recipe));
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 2, 2), recipe);
    plan.zero = 1;
    RankPool rank_pool(training_of(tiny_llama(), plan), {10, {}});
    const WholeTensors first = rank_pool.parameters();
    for (int step = 0; step < 2; ++step) {
      const WholeTensors weights = rank_pool.parameters(), masters = rank_pool.master_weights();
      EXPECT_EQ(masters.size(), recipe == Recipe::bf16 ? 0 : weights.size());
      for (const auto& [name, master] : masters)
        for (std::size_t i = 0; i < master.size(); ++i)
          ASSERT_EQ(weights.at(name)[i], float{kernels::Bf16(master[i])}) << name << " after step " << step;
      rank_pool.step();
    }
    std::string where;
    EXPECT_GT(largest_error(rank_pool.parameters(), first, where), rounding_of(Precision::bf16));
  }
}

// Rounded activations and gradients move the losses, but not where they go.
TEST(Bf16Training, FollowsTheLossesOfFp32Down) {
  for (const Recipe recipe : kRecipesOfBf16) {
    SCOPED_TRACE(to_string(recipe));
    const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
    const Training wide = training_of(tiny_llama(), plan);
    RankPool fp32(wide, {10, {}}), bf16(training_of(tiny_llama(), in_bf16(plan, recipe)), {10, {}});
    const double tolerance = losses_apart(wide, Precision::bf16);
    double first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
      last = fp32.step().loss;
      if (step == 0) first = last;
      EXPECT_NEAR(bf16.step().loss, last, tolerance) << "step " << step;
    }
    EXPECT_GT(first - last, 10 * tolerance) << "what does not learn would follow too";
  }
}

// All but the loss, its logits and the log-sum-exps of attention have two bytes instead of four.
TEST(Bf16Activations, TakeTheirBytesInTheWork) {
  const auto peak = [](const Plan& plan) {
    Model model = tiny_llama();
    model.vocab = 8;
    RankPool rank_pool(training_of(model, plan), {10, {}});
    rank_pool.step();
    return rank_pool.peak_activation_bytes().front();
  };
  const Plan plan = plan_of(ScheduleName::gpipe, 1, 1, 1);
  EXPECT_LT(peak(in_bf16(plan)), 0.56 * peak(plan));
  EXPECT_GE(peak(in_bf16(plan)), 0.5 * peak(plan));
}

TEST(Bf16Gathered, TakesTwoBytesAParameter) {
  const auto gathered = [](Plan plan) {
    plan.zero = 3;
    RankPool rank_pool(training_of(tiny_llama(), plan), {10, {}});
    rank_pool.step();
    return rank_pool.peak_gathered_bytes().front();
  };
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 2);
  for (const Recipe recipe : {Recipe::megatron, Recipe::fsdp})
    EXPECT_EQ(gathered(in_bf16(plan, recipe)), 0.5 * gathered(plan));
}

}  // namespace
}  // namespace rehearse
