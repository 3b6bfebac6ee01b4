// The cost of the slowest of many GPUs: GEMMs and attention take longer, memory-bound kernels do not.
#include "cost/slowest_gpu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/price.h"
#include "machines.h"

namespace rehearse {
namespace {

TEST(SlowestGpu, IsAsFarOutAsTheLargestOfNormalVariables) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(2), 1 / std::sqrt(M_PI), 0.03);
  EXPECT_NEAR(expected_largest(8), 1.4236, 0.015);  // Tippett 1925
  EXPECT_NEAR(expected_largest(1000), 3.2414, 0.02);
}

TEST(SlowestGpu, IsTheOnlyOneOfAJobOfOne) {
  Profile profile;
  profile.gpu_spread = 0.1;
  EXPECT_EQ(slowest_gpu(profile, test::dgx_h100(), 1), 1);
  EXPECT_GT(slowest_gpu(profile, test::dgx_h100(), 64), slowest_gpu(profile, test::dgx_h100(), 8));
  profile.gpu_spread = 0;
  EXPECT_EQ(slowest_gpu(profile, test::dgx_h100(), 1024), 1);
}

TEST(SlowestGpu, IsTheSameOneForRanksOnItsParts) {
  Profile profile;
  profile.gpu_spread = 0.1;
  EXPECT_EQ(slowest_gpu(profile, read_cluster("h100-quarters"), 4), 1);
}

TEST(SlowestGpu, HoldsUpProductsAndNotWhatTheMemoryBounds) {
  Block block;
  block.name = "layer";
  block.tensors = {{"x", TensorRole::input, 1e9, 2}, {"w", TensorRole::parameter, 1e9, 2}};
  block.forward = {{"product", Gemm{4096, 4096, 4096, 1}, {0, 1}, {0}}};
  block.backward_weight = {{"scale", Pointwise::dropout, {0}, {0}}};
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 1}}};
  Profile profile = test::round_numbers();
  profile.gemm["bf16"] = {{4096, 4096, 4096, 1e-3}};
  profile.stream["copy"] = {{1e9, 1e12}};
  profile.gpu_spread = 0.1;
  Plan plan;
  plan.dp = 8;
  const Prices prices = price(work, plan, test::dgx_a100(), profile);
  const StageTimes& stage = prices.times.stages[0];
  EXPECT_DOUBLE_EQ(prices.slowest_gpu, 1 + 0.1 * expected_largest(8));
  EXPECT_DOUBLE_EQ(stage.forward.compute, prices.slowest_gpu * 1e-3);
  EXPECT_DOUBLE_EQ(stage.backward_weight.compute, 4e9 / 1e12);
}

}  // namespace
}  // namespace rehearse
