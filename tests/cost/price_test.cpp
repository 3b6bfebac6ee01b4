#include "cost/price.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>

#include "cost/collectives.h"
#include "cost/curves.h"
#include "cost/kernel_times.h"
#include "machines.h"
#include "model/read.h"

namespace rehearse {
namespace {

// One block with one kernel of each sort, each worth an easy number of seconds.
Work small_work() {
  Block block;
  block.name = "layer";
  block.tensors = {{"x", TensorRole::input, 1e9, 2}, {"w", TensorRole::parameter, 1e9, 2}};
  block.forward = {{"product", Gemm{4096, 4096, 4096, 1}, {0, 1}, {0}},
                   {"sum", Collective{CollectiveOp::all_reduce, CommGroup::tensor, 1e9}, {0}, {0}}};
  block.recompute = {block.forward[0]};
  block.backward_input = {{"gradient", Gemm{4096, 4096, 4096, 2}, {0, 1}, {0}}};
  block.backward_weight = {{"scale", Pointwise::dropout, {0}, {0}}};
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 3}}, {{0, 5}}};
  return work;
}

Profile small_profile() {
  Profile profile = test::round_numbers();
  profile.gemm["bf16"] = {{4096, 4096, 4096, 1e-3}};
  profile.stream["copy"] = {{1e9, 1e12}};
  return profile;
}

Plan two_stages(int tp) {
  Plan plan;
  plan.tp = tp;
  plan.pp = 2;
  return plan;
}

TEST(Price, BooksEveryKernelWhereItBelongs) {
  const Prices prices = price(small_work(), two_stages(8), test::dgx_a100(), small_profile());
  ASSERT_EQ(prices.times.stages.size(), 2u);
  const StageTimes& first = prices.times.stages[0];
  const double sum = 10e-6 + 14e-6 + 2 * 7.0 / 8 * 1e9 / 150e9;
  EXPECT_DOUBLE_EQ(first.forward.compute, 3 * 1e-3);
  EXPECT_DOUBLE_EQ(first.forward.tp, 3 * sum);
  EXPECT_DOUBLE_EQ(first.backward_input.recompute, 3 * 1e-3);
  EXPECT_DOUBLE_EQ(first.backward_input.compute, 3 * 2e-3);
  EXPECT_DOUBLE_EQ(first.backward_weight.compute, 3 * 4e9 / 1e12);
  EXPECT_DOUBLE_EQ(prices.times.stages[1].forward.compute, 5 * 1e-3);
  EXPECT_EQ(first.forward.cp + first.forward.ep + first.forward.optimizer, 0);
}

// The first stage receives gradients alone, the last one activations alone, those between both.
TEST(Price, OfWhatArrivesIsBookedWhereItComesFromAnotherStage) {
  Work work = small_work();
  work.parts = {{{0, 1}}, {{0, 1}}, {{0, 1}}};
  const std::vector<StageTimes> whole =
      price(work, two_stages(8), test::dgx_a100(), small_profile()).times.stages;
  work.arrival.tensors = work.blocks[0].tensors;
  work.arrival.forward = {{"gather", Collective{CollectiveOp::all_gather, CommGroup::tensor, 1e9}, {}, {0}},
                          {"place", Pointwise::eager, {0}, {1}}};
  const Prices prices = price(work, two_stages(8), test::dgx_a100(), small_profile());
  const double gather =
      collective_time(small_profile(), test::dgx_a100(), CollectiveOp::all_gather, 1e9, {8, 1, 1}).total();
  for (std::size_t s = 0; s < 3; ++s) {
    const StageTimes& stage = prices.times.stages[s];
    const double activation = s > 0, gradient = s < 2;
    EXPECT_NEAR(stage.forward.tp - whole[s].forward.tp, activation * gather, 1e-12);
    EXPECT_NEAR(stage.forward.compute - whole[s].forward.compute, activation * 4e9 / 1e12, 1e-12);
    EXPECT_NEAR(stage.backward_input.tp - whole[s].backward_input.tp, gradient * gather, 1e-12);
    EXPECT_NEAR(stage.backward_input.compute - whole[s].backward_input.compute, gradient * 4e9 / 1e12, 1e-12);
    EXPECT_EQ(stage.backward_weight.total(), whole[s].backward_weight.total());
  }
}

// Readers of a quantized tensor multiply in fp8, all others in bf16.
TEST(Price, OfAnFp8PlanTellsProductsThatAreNotQuantizedApart) {
  Work work = small_work();
  Block& block = work.blocks[0];
  block.tensors.push_back({"x_fp8", TensorRole::activation, 1e9, 1});
  block.backward_input[0].reads = {2, 1};
  Profile profile = small_profile();
  profile.gemm["fp8"] = {{4096, 4096, 4096, 0.5e-3}};
  Plan plan = two_stages(8);
  plan.precision = Precision::fp8;
  Cluster cluster = test::dgx_a100();
  cluster.gpu.peak_flops["fp8"] = 2 * cluster.gpu.peak_flops.at("bf16");
  const StageTimes stage = price(work, plan, cluster, profile).times.stages[0];
  EXPECT_DOUBLE_EQ(stage.forward.compute, 3 * 1e-3);
  EXPECT_DOUBLE_EQ(stage.backward_input.compute, 3 * 2 * 0.5e-3);
  profile.fp8_blocks = 1.25;
  EXPECT_EQ(price(work, plan, cluster, profile).times.stages[0].backward_input.compute,
            stage.backward_input.compute);
  plan.fp8_scaling = Fp8Scaling::mx;
  const StageTimes in_blocks = price(work, plan, cluster, profile).times.stages[0];
  EXPECT_EQ(in_blocks.forward.compute, stage.forward.compute) << "in bf16";
  EXPECT_DOUBLE_EQ(in_blocks.backward_input.compute, 1.25 * stage.backward_input.compute);
}

// 6 bytes of a gradient's element to cast it, 12 to add it: 1e9 elements a layer at 1 TB/s. Autocast casts
// the weights, too.
TEST(Price, OfBf16OptimizerAddsTheGradientsOfEachMicrobatch) {
  Plan plan = two_stages(1);
  const Prices fused = price(small_work(), plan, test::dgx_a100(), small_profile());
  const std::map<Recipe, double> seconds = {{Recipe::deepspeed_bf16, 18e-3},
                                            {Recipe::nanotron, 10e-3},  // one kernel for both
                                            {Recipe::autocast, 18e-3}};
  for (const auto& [recipe, of_a_layer] : seconds) {
    plan.recipe = recipe;
    const Prices added = price(small_work(), plan, test::dgx_a100(), small_profile());
    for (const std::size_t stage : {0u, 1u}) {
      const int layers = stage == 0 ? 3 : 5;
      EXPECT_NEAR(added.times.stages[stage].backward_weight.compute -
                      fused.times.stages[stage].backward_weight.compute,
                  layers * of_a_layer, 1e-12);
      EXPECT_NEAR(added.times.stages[stage].forward.compute - fused.times.stages[stage].forward.compute,
                  recipe == Recipe::autocast ? layers * 6e-3 : 0, 1e-12);
    }
  }
}

// 4 bytes an element are copied from the gathered buffer for either pass, and 2 + 4 into the fp32 buffer for
// the reduction. Where parameters and gradients stay whole between microbatches, nothing is copied.
TEST(Price, OfFsdp2CopiesWhatItGathersAndReducesForEachMicrobatch) {
  Plan plan = two_stages(1);
  plan.dp = 4;
  plan.zero = 3;
  const StageTimes plain = price(small_work(), plan, test::dgx_a100(), small_profile()).times.stages[0];
  plan.framework = Framework::fsdp;
  const StageTimes copied = price(small_work(), plan, test::dgx_a100(), small_profile()).times.stages[0];
  EXPECT_NEAR(copied.forward.compute - plain.forward.compute, 3 * 4e-3, 1e-12);
  EXPECT_NEAR(copied.backward_input.compute - plain.backward_input.compute, 3 * 4e-3, 1e-12);
  EXPECT_NEAR(copied.backward_weight.compute - plain.backward_weight.compute, 3 * 6e-3, 1e-12);
  plan.reduce_each_microbatch = plan.reshard_after_forward = false;
  const StageTimes whole = price(small_work(), plan, test::dgx_a100(), small_profile()).times.stages[0];
  EXPECT_EQ(whole.forward.compute, plain.forward.compute);
  EXPECT_EQ(whole.backward_weight.compute, plain.backward_weight.compute);
}

TEST(Price, OfGroupsThatLieUnevenlyIsThatOfTheMostScattered) {
  // With groups of 3 consecutive ranks on nodes of 8, ranks 6 to 8 are on two nodes, ranks 0 to 2 on one.
  const auto sum = [](int tp, int pp) {
    Plan plan = two_stages(tp);
    plan.pp = pp;
    Work work = small_work();
    work.parts.resize(static_cast<std::size_t>(pp), work.parts[0]);
    return price(work, plan, test::dgx_a100(), small_profile()).times.stages[0].forward.tp;
  };
  const Cluster cluster = test::dgx_a100();
  const Profile profile = small_profile();
  const auto alone = [&](const std::vector<int>& ranks) {
    return 3 * collective_time(profile, cluster, CollectiveOp::all_reduce, 1e9, group_shape(cluster, ranks))
                   .total();
  };
  EXPECT_DOUBLE_EQ(sum(3, 2), alone({0, 1, 2}));
  EXPECT_DOUBLE_EQ(sum(3, 3), alone({6, 7, 8}));
  EXPECT_GT(sum(3, 3), 2 * sum(3, 2));
}

// Additional step time of --clip-grad for 3e9 parameters with fp32 gradients on 16 ranks.
double clipping_s(const Cluster& cluster, Plan plan) {
  const Profile profile = small_profile();
  const double without = price(small_work(), plan, cluster, profile).times.step[0].optimizer;
  plan.clip_grad = 1;
  return price(small_work(), plan, cluster, profile).times.step[0].optimizer - without;
}

double read_of_gradients_and_a_number_over_all_ranks_s(const Cluster& cluster) {
  const Profile profile = small_profile();
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  const double number =
      collective_time(profile, cluster, CollectiveOp::all_reduce, 4, group_shape(cluster, all)).total();
  EXPECT_GT(number, 0);
  return 3e9 * 4 / 1e12 + number + pointwise_time(profile, cluster.gpu, Pointwise::clip_scale, 8).seconds;
}

TEST(Price, OfClippingIsOneMoreReadOfTheGradientsAndANumberOverAllRanks) {
  const Cluster cluster = test::dgx_a100();
  EXPECT_NEAR(clipping_s(cluster, two_stages(8)), read_of_gradients_and_a_number_over_all_ranks_s(cluster),
              1e-9);
}

// Gradients are read and written, 8 bytes, where Adam moves 4 + 2 (8 + 4) + 2.
TEST(Price, OfClippingAtTheHostIsAPassOverTheGradientsThereAsWell) {
  Cluster cluster = test::dgx_a100();
  cluster.node.host.link.bandwidth = 25e9;
  cluster.node.host.adam_parameters_per_s = 4e9;
  Plan plan = two_stages(8);
  plan.offload = Offload::optimizer;
  const double adam_s = 3e9 * 8 / 4e9;
  EXPECT_NEAR(clipping_s(cluster, plan),
              adam_s * 8 / 30 + read_of_gradients_and_a_number_over_all_ranks_s(cluster), 1e-9);
}

// Forward nn.CrossEntropyLoss of 16,384 tokens on an A100, in milliseconds by vocabulary
// (linkedin/Liger-Kernel, benchmark/data/all_benchmark_data.csv, cross_entropy, huggingface).
TEST(Price, OfLogSoftmaxIsWhatAnA100Took) {
  const Cluster cluster = read_cluster("dgx-a100-80gb");
  const Profile profile = read_profile("a100-sxm-80gb");
  for (const auto& [vocabulary, measured_ms] :
       {std::pair{32768, 5.3168}, {65536, 10.6151}, {131072, 20.7264}}) {
    const double bytes = 16.0 * 16384 * vocabulary;
    const double predicted_s = pointwise_time(profile, cluster.gpu, Pointwise::cross_entropy, bytes).seconds;
    EXPECT_NEAR(predicted_s * 1e3 / measured_ms, 1, 0.06) << vocabulary;
  }
}

TEST(Price, OfMetricsIsTheirCastAndLogSoftmax) {
  const Cluster cluster = test::dgx_a100();
  Work work = small_work();
  work.blocks[0].tensors.push_back({"scores of words", TensorRole::activation, 1e9, 2});
  work.blocks[0].tensors.back().use = TensorUse::logits;
  Plan plan = two_stages(8);
  const auto backward_s = [&] {
    return price(work, plan, cluster, small_profile()).times.stages[0].backward_weight.compute;
  };
  const double without = backward_s();
  plan.train_metrics = 2;
  EXPECT_NEAR(backward_s() - without, 3 * 2 * 1e9 * (6 + 16) / 1e12, 1e-9);
}

TEST(Price, CountsAllKernelSecondsOfAMicrobatch) {
  const Prices prices = price(small_work(), two_stages(1), test::dgx_a100(), small_profile());
  double total = 0;
  for (const StageTimes& stage : prices.times.stages) {
    total += stage.forward.total() + stage.backward_input.total() + stage.backward_weight.total();
  }
  EXPECT_DOUBLE_EQ(prices.priced_s, total);
  EXPECT_EQ(prices.extrapolated_s, 0);
}

TEST(Price, CountsExtrapolatedSecondsOnTheirOwn) {
  Work work = small_work();
  std::get<Gemm>(work.blocks[0].backward_input[0].what) = {64, 64, 64, 1};
  const Prices prices = price(work, two_stages(1), test::dgx_a100(), small_profile());
  double outside = 0;
  for (const StageTimes& stage : prices.times.stages) outside += stage.backward_input.compute;
  EXPECT_GT(outside, 0);
  EXPECT_DOUBLE_EQ(prices.extrapolated_s, outside);
}

TEST(Price, OfAStepStreamsThirtyBytesAParameter) {
  const Prices prices = price(small_work(), two_stages(1), test::dgx_a100(), small_profile());
  ASSERT_EQ(prices.times.step.size(), 2u);
  EXPECT_DOUBLE_EQ(prices.times.step[0].optimizer, 3e9 * 30 / 1e12);
  EXPECT_DOUBLE_EQ(prices.times.step[1].optimizer, 5e9 * 30 / 1e12);
}

// Three parameters of the first stage and five of the second over two ranks: one of them owns two, or three.
TEST(Price, OfAStepIsThatOfTheRankThatOwnsMost) {
  Plan plan = two_stages(1);
  plan.dp = plan.global_batch = 2;
  plan.zero = 1;
  plan.framework = Framework::internevo;
  const Prices prices = price(small_work(), plan, test::dgx_a100(), small_profile());
  EXPECT_DOUBLE_EQ(prices.times.step[0].optimizer, 2e9 * 30 / 1e12);
  EXPECT_DOUBLE_EQ(prices.times.step[1].optimizer, 3e9 * 30 / 1e12);
  plan.framework = Framework::deepspeed;
  const Prices even = price(small_work(), plan, test::dgx_a100(), small_profile());
  EXPECT_DOUBLE_EQ(even.times.step[0].optimizer, 1.5e9 * 30 / 1e12);
}

TEST(Price, LooksEachShapeUpOnce) {
  const Profile profile = small_profile();
  const Cluster cluster = test::dgx_a100();
  KernelTimes times(profile, cluster.gpu, "bf16");
  price(small_work(), two_stages(1), cluster, profile, times);
  const std::size_t distinct = times.distinct();
  EXPECT_EQ(distinct, 5u);  // two GEMMs, one stream, two optimizer steps
  price(small_work(), two_stages(2), cluster, profile, times);
  EXPECT_EQ(times.distinct(), distinct);
}

// GPT-3 175B on 8-way tensor parallelism, one microbatch. No kernel can beat the roofline, and A100s reach
// more than half of it in GEMMs (Narayanan et al. 2021 report 44 to 52 % for whole iterations).
TEST(Price, OfALayerOfGpt3LiesBetweenTheRooflineAndTwiceIt) {
  Plan plan;
  plan.tp = 8;
  plan.sequence_parallel = true;
  const Model model = read_model("gpt3-175b");
  const Work work = make_work(model, plan);
  const Prices prices = price(work, plan, test::dgx_a100(), read_profile("a100-sxm-80gb"));
  const FlopCount flops = count_flops(work, plan);
  const StageTimes& stage = prices.times.stages[0];
  const double least = flops.model() / plan.tp / 312e12;
  const double compute = stage.forward.compute + stage.backward_input.compute + stage.backward_weight.compute;
  EXPECT_GT(compute, least);
  EXPECT_LT(compute, 2 * least);
  EXPECT_LT(prices.extrapolated_s, 0.2 * prices.priced_s);
}

RC_GTEST_PROP(Price, GrowsWithRepeats, ()) {
  Work work = small_work();
  const Profile profile = small_profile();
  const std::int64_t repeats = *rc::gen::inRange<std::int64_t>(1, 200);
  work.parts = {{{0, repeats}}, {{0, 1}}};
  const Prices prices = price(work, two_stages(4), test::dgx_a100(), profile);
  const double one = prices.times.stages[1].forward.total();
  RC_ASSERT(std::abs(prices.times.stages[0].forward.total() - static_cast<double>(repeats) * one) <
            1e-9 * static_cast<double>(repeats) * one);
}

}  // namespace
}  // namespace rehearse
