// The listed kernels sum to the price of a stage.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost/curves.h"
#include "cost/kernel_list.h"
#include "cost/price.h"
#include "machines.h"
#include "model/read.h"

namespace rehearse {
namespace {

Plan one_gpu() {
  Plan plan;
  plan.seq = 2048;
  plan.micro_batch = 2;
  plan.recompute = Recompute::selective;
  return plan;
}

TEST(KernelList, AddsUpToWhatAStageIsPricedAtWhereNothingWaits) {
  const Model model = read_model("llama3-8b");
  const Plan plan = one_gpu();
  const Cluster cluster = test::dgx_a100();
  Profile profile = read_profile("a100-sxm-80gb");
  profile.host_launch_s = 0;
  const Work work = make_work(model, plan);
  const StageTimes stage = price(work, plan, cluster, profile).times.stages.front();
  double sum = 0;
  for (const KernelTime& kernel : kernel_list(work, 0, plan, cluster, profile))
    sum += kernel.runs * kernel.seconds;
  const double priced = stage.forward.total() + stage.backward_input.total() + stage.backward_weight.total();
  EXPECT_NEAR(sum / priced, 1, 1e-9);
}

TEST(KernelList, CountsTheLayersOfEachKindTogetherWhereTheyTakeTurns) {
  const Model model = read_model("gpt-oss-20b");
  Plan plan = one_gpu();
  plan.recompute = Recompute::none;
  const std::vector<KernelTime> kernels =
      kernel_list(make_work(model, plan), 0, plan, test::dgx_a100(), read_profile("a100-sxm-80gb"));
  const auto runs = [&](const std::string& block) {
    const auto found = std::ranges::find_if(kernels, [&](const KernelTime& kernel) {
      return kernel.block == block && kernel.name == "attention";
    });
    return found == kernels.end() ? 0 : found->runs;
  };
  EXPECT_EQ(runs("sparse_layer"), 12);
  EXPECT_EQ(runs("full_sparse_layer"), 12);
  EXPECT_EQ(
      std::ranges::count_if(kernels, [](const KernelTime& kernel) { return kernel.name == "attention"; }), 2);
}

TEST(KernelList, TellsProductsAndCollectivesByWhatTheyDo) {
  const Model model = read_model("llama3-8b");
  Plan plan = one_gpu();
  plan.tp = 8;
  plan.sequence_parallel = true;
  const std::vector<KernelTime> kernels =
      kernel_list(make_work(model, plan), 0, plan, test::dgx_a100(), read_profile("a100-sxm-80gb"));
  for (const KernelTime& kernel : kernels) {
    if (kernel.name == "qkv") {
      EXPECT_DOUBLE_EQ(kernel.flops, 2.0 * 4096 * 4096 * 6144 / 8);
    }
    if (kernel.is_collective) {
      EXPECT_EQ(kernel.flops, 0) << kernel.name;
    }
  }
  EXPECT_TRUE(std::ranges::any_of(kernels, &KernelTime::is_collective));
}

// 8 experts here, 2 x 2048 x 2 rows of 4096: a cast reads 2 bytes an element and writes 2.
TEST(KernelList, TakesTheRowsOfEachExpertForAKernelOfTheirOwnWhereTheyAreCastSo) {
  const Model model = read_model("mixtral-8x7b");
  Plan plan = one_gpu();
  plan.recompute = Recompute::none;
  plan.precision = Precision::fp8;
  const Profile profile = read_profile("b200-sxm");
  const Cluster cluster = read_cluster("dgx-b200");
  plan.fp8_scaling = Fp8Scaling::mx;
  const std::vector<KernelTime> kernels = kernel_list(make_work(model, plan), 0, plan, cluster, profile);
  const double cast_s = std::ranges::find(kernels, "experts_up_operand_quantise", &KernelTime::name)->seconds;
  const double bytes = 4.0 * 2 * 2048 * 2 * 4096;
  EXPECT_DOUBLE_EQ(cast_s,
                   8 * pointwise_time(profile, cluster.gpu, Pointwise::quantize_blocks, bytes / 8).seconds);
  EXPECT_GT(cast_s, 1.2 * pointwise_time(profile, cluster.gpu, Pointwise::quantize_blocks, bytes).seconds);
}

}  // namespace
}  // namespace rehearse
