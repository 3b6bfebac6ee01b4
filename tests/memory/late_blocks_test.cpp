// Allocations of an iteration after its activations are released.
#include "memory/late_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "memory/memory.h"
#include "result/cases.h"

namespace rehearse {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kLargest = 2 * 1024 * 256;  // gate and up projections of small_model()

std::vector<LateBlocks> late(const Plan& plan, const Model& model = small_model()) {
  const Work work = make_work(model, plan);
  return late_blocks(rank_memory(full_schedule(plan), plan, work).at(0), plan, work);
}

double parameters(const Plan& plan) {
  return make_work(small_model(), plan).parameters(0);
}

Plan with_zero_1(Framework framework, Recipe recipe, int dp) {
  Plan plan = small_plan(1, 1, 4, dp);
  plan.framework = framework;
  plan.recipe = recipe;
  plan.zero = 1;
  return plan;
}

TEST(LateBlocks, AreNoneInMegatronLm) {
  EXPECT_THAT(late(small_plan(1, 1, 4, 4)), IsEmpty());
}

TEST(LateBlocks, TheLargestGradientIsWidened) {
  Plan plan = small_plan(1, 1, 4);
  plan.recipe = Recipe::deepspeed_bf16;
  EXPECT_THAT(late(plan), ElementsAre(ElementsAre(4 * kLargest)));
  plan.dp = 2;
  plan.global_batch = 8;
  EXPECT_THAT(late(plan), ElementsAre(ElementsAre(4 * kLargest), ElementsAre(4 * parameters(plan))));
}

TEST(LateBlocks, ZeroOneOfDeepSpeedPutsBucketsAndSharesSideBySide) {
  Plan plan = with_zero_1(Framework::megatron_2021, Recipe::sagemaker, 4);
  const double all = parameters(plan);
  EXPECT_THAT(late(plan), ElementsAre(ElementsAre(2 * all), ElementsAre(2 * all / 4), ElementsAre(2 * all)));
  plan.precision = Precision::fp16;  // looks for infinities
  EXPECT_THAT(late(plan)[1], ElementsAre(4 * kLargest));
  plan.dp = 64;
  plan.global_batch = 256;
  EXPECT_THAT(late(plan)[1], ElementsAre(4 * all / 64));
}

TEST(LateBlocks, MegatronLmOf2021PutsAllGradientsSideBySide) {
  Plan plan = with_zero_1(Framework::megatron_2021, Recipe::sagemaker, 1);
  plan.zero = 0;
  plan.overlap_grad_reduce = plan.fused_step = false;
  const double all = parameters(plan);
  EXPECT_THAT(late(plan), ElementsAre(ElementsAre(2 * all)));  // even of one replica
  plan.global_batch = plan.micro_batch;  // one backward pass, which the gradients come with
  const LateBlocks one = late(plan).at(0);
  EXPECT_EQ(one.back(), 2 * all);
  EXPECT_EQ(std::accumulate(one.begin(), one.end() - 1, 0.0), 2 * all);
  EXPECT_EQ(*std::max_element(one.begin(), one.end() - 1), 2 * kLargest);
  plan.overlap_grad_reduce = true;  // PyTorch's DistributedDataParallel
  EXPECT_THAT(late(plan), IsEmpty());
  plan.overlap_grad_reduce = false;
  plan.recipe = Recipe::megatron;  // fp32 gradients lie in a buffer
  EXPECT_THAT(late(plan), IsEmpty());
}

TEST(LateBlocks, BucketsAreOfHalfABillionElements) {
  const Plan plan = with_zero_1(Framework::deepspeed, Recipe::zero, 4);
  Model large = small_model();
  large.vocab = 1 << 22;
  const double all = make_work(large, plan).parameters(0);
  ASSERT_GT(all, 4 * 5e8);
  const auto blocks = late(plan, large);
  EXPECT_EQ(blocks.front(), LateBlocks{2 * 5e8});
  EXPECT_EQ(blocks.back(), LateBlocks{2 * all / 4});  // four gathers of a little more each
}

TEST(LateBlocks, NanotronGathersAllParametersTwice) {
  const Plan plan = with_zero_1(Framework::nanotron, Recipe::nanotron, 2);
  const double all = parameters(plan);
  EXPECT_THAT(late(plan), ElementsAre(ElementsAre(all, all, all, 2 * all)));
}

}  // namespace
}  // namespace rehearse
