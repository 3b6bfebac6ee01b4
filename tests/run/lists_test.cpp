// The cost of the tensor lists that ZeRO-3 of DeepSpeed exchanged until 2021.
#include <gtest/gtest.h>

#include "cases.h"
#include "cost/lists.h"
#include "cost/price.h"
#include "model/read.h"
#include "plan/weights.h"
#include "run/iteration.h"
#include "schedule/op_messages.h"

namespace rehearse {
namespace {

constexpr double kView = 3e-6, kCopy = 8.25e-6, kCopyInPython = 12e-6;

// Over eight ranks: observed in DeepSpeed 0.3.16, 130 + 250 us with a collective's 140.8.
TEST(Lists, TakeTheHostAViewAndACopyForEachRank) {
  Profile profile;
  profile.host_collective_s = 140.8e-6;
  EXPECT_DOUBLE_EQ(list_host_s(profile, 8), 380e-6);
  EXPECT_DOUBLE_EQ(list_host_s(profile, 808), 380e-6 + 800 * (kView + kCopy));
  EXPECT_DOUBLE_EQ(lists_apart_s(800, 10), 800 * 10 * (3 * kView + kCopyInPython));
}

TEST(Lists, AreCopiedAtTheMemorysBandwidthOrAsFastAsKernelsStart) {
  Profile profile;
  profile.launch_s = 2e-6;
  Cluster cluster;
  cluster.gpu.memory_bandwidth = 2e12;
  EXPECT_DOUBLE_EQ(list_copies_s(profile, cluster, 8, 1e9), 1e-3);
  EXPECT_DOUBLE_EQ(list_copies_s(profile, cluster, 1000, 1e9), 2e-3);
}

// 400 copies take the GPU 1 ms, and the host 3.3 ms to launch.
TEST(Lists, HoldUpKernelsByWhatTheyCopyAfterTheHostHasLaunchedIt) {
  Profile profile;
  profile.launch_s = 2e-6;
  Cluster cluster;
  cluster.gpu.memory_bandwidth = 2e12;
  const double all_s = list_host_s(profile, 400) + 0.5e-3;  // 1e9 bytes set to zero
  const auto left_s = [&](std::optional<double> beside_s) {
    return list_wait_s(profile, cluster, 400, 1e9, beside_s) - all_s;
  };
  EXPECT_NEAR(left_s(2e-3), 0, 1e-12);
  EXPECT_NEAR(left_s(3e-3), 0.7e-3, 1e-12);
  EXPECT_NEAR(left_s(9e-3), 1e-3, 1e-12);
  EXPECT_NEAR(left_s({}), 0, 1e-12);
}

Block layer_of(const std::string& model, Recompute recompute) {
  Plan plan;
  plan.recompute = recompute;
  const Work work = make_work(read_model(model), plan);
  for (const Block& block : work.blocks)
    if (block.name != "embedding" && block.name != "head") return block;
  return {};
}

// GPT-3's layer computes with 1.8e9 elements: only its last weight is still there when the backward begins.
TEST(Lists, HoldWeightsThatAreLargeAndWerePutAway) {
  const Weights recomputed = weights_of(layer_of("gpt3-175b", Recompute::full));
  EXPECT_EQ(recomputed.all, 4);
  EXPECT_EQ(recomputed.dropped, 3);
  EXPECT_EQ(recomputed.kept, 8);  // biases and norms
  EXPECT_EQ(weights_of(layer_of("gpt3-175b", Recompute::none)).dropped, 0);
  EXPECT_EQ(weights_of(layer_of("gpt2", Recompute::full)).dropped, 0);
}

// Each weight of GPT-3 fills a bucket of 5e8 elements by itself; a layer of GPT-2 is far from filling one.
TEST(Lists, AreReducedInBucketsOfWholeGradients) {
  EXPECT_EQ(weights_of(layer_of("gpt3-175b", Recompute::full)).buckets, 4);
  EXPECT_EQ(weights_of(layer_of("gpt2", Recompute::full)).buckets, 1);
}

TEST(Lists, AreNotGatheredAheadOfAWeightThatIsAllThatMayBeHeld) {
  EXPECT_TRUE(weights_of(layer_of("gpt3-175b", Recompute::full)).gathered_ahead());
  EXPECT_FALSE(weights_of(layer_of("sc21-529.6b", Recompute::full)).gathered_ahead());
  for (const auto& [model, ahead] : {std::pair("gpt3-175b", true), {"sc21-529.6b", false}}) {
    Experiment experiment = replicas(model, 64);
    experiment.plan.framework = Framework::deepspeed_2021;
    experiment.plan.zero = 3;
    experiment.plan.micro_batch = 4;
    experiment.plan.global_batch = 256;
    const Report report = run_iteration(experiment).report;
    double gathers_s = 0, reductions_s = 0;
    for (const CommunicationLine& line : report.communication)
      (line.op == "all_gather" ? gathers_s : reductions_s) += line.busy_s;
    EXPECT_NEAR(report.time.exposed_dp, reductions_s + (ahead ? 0 : gathers_s), 0.1 * gathers_s) << model;
  }
}

// An isolated gather includes its copies. Without prefetch, the pass does not wait for them a second time.
TEST(Lists, CountTheCopiesOfAGatherOnce) {
  const Profile profile = read_profile("a100-sxm-80gb");
  const Cluster cluster = read_cluster("selene");
  const auto forward_s = [&](int prefetch) {
    Plan plan = replicas("gpt3-175b", 64).plan;
    plan.framework = Framework::deepspeed_2021;
    plan.zero = 3;
    plan.prefetch = prefetch;
    const Work work = make_work(read_model("gpt3-175b"), plan);
    return price(work, plan, cluster, profile).times.stages[0].forward.compute;
  };
  const Weights layer = weights_of(layer_of("gpt3-175b", Recompute::none));
  const double copies_s = list_copies_s(profile, cluster, 64, layer.bytes / layer.all);
  EXPECT_NEAR(forward_s(1) - forward_s(0), 96 * 4 * copies_s, 0.02 * 96 * 4 * copies_s);
}

TEST(Lists, OfAUnitServeThePassThatUsesItNext) {
  RankOps ops;
  const auto add = [&ops](OpKind kind, int part) {
    Op op = make_op(kind, 0);
    op.part = static_cast<std::uint16_t>(part);
    op.parts = 2;
    ops.add(op, {});
  };
  add(OpKind::unshard, 0);
  add(OpKind::unshard, 1);
  add(OpKind::forward, 0);
  add(OpKind::unshard, 1);  // for the backward, which begins with the last unit
  add(OpKind::backward, 0);
  add(OpKind::reduce_grad, 0);
  add(OpKind::backward, 1);
  EXPECT_FALSE(gathers_for_backward(ops, 0));
  EXPECT_TRUE(gathers_for_backward(ops, 3));
  EXPECT_FALSE(gathers_for_backward(ops, 5));
  Plan plan;
  plan.framework = Framework::deepspeed_2021;
  plan.zero = 3;
  plan.dp = 2;
  MessageSizes sizes;
  sizes.gradient_bytes = sizes.parameter_bytes = {120};
  sizes.units = {{0.5, 0.5}};
  sizes.weights = {{{4, 1, 2}, {6, 2, 3}}};
  const auto sent = [&](std::size_t op) { return messages_of(sizes, plan, ops, op).front(); };
  EXPECT_EQ(sent(0).calls, 4);
  EXPECT_EQ(sent(0).bytes, 60.0 / 4);
  EXPECT_EQ(sent(3).calls, 6 + 2);
  EXPECT_EQ(sent(3).bytes, 60.0 / 6);
  EXPECT_EQ(sent(5).calls, 3);
  EXPECT_EQ(sent(5).op, CollectiveOp::all_reduce);
}

double step_s(Framework framework, int dp) {
  Experiment experiment = replicas("gpt2", dp);
  experiment.plan.framework = framework;
  experiment.plan.zero = 3;
  return run_iteration(experiment).report.step_time_s;
}

// GPT-2 has 50 weights of more than 100,000 elements, four in each of twelve layers and two tables, and 98
// smaller parameters. The host gathers each weight twice and all the others once a step, and computes nothing
// meanwhile.
TEST(Lists, AddTheHostsTimeForEachWeightTwiceAndForTheOthersOnce) {
  const Profile profile = read_profile("a100-sxm-80gb");
  for (const int dp : {8, 64}) {
    const double since = step_s(Framework::deepspeed, dp);
    const double then = step_s(Framework::deepspeed_2021, dp);
    const double apart = lists_apart_s(dp, 98);
    const double all_hidden = list_host_s(profile, dp);
    const double none_hidden = list_wait_s(profile, read_cluster("selene"), dp, 2 * 124e6 / 50, 1.0);
    EXPECT_GT(then - since, 0.9 * (2 * 50 * all_hidden + apart)) << dp;
    EXPECT_LT(then - since, 1.1 * (2 * 50 * none_hidden + apart)) << dp;
  }
}

}  // namespace
}  // namespace rehearse
