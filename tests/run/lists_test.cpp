// What the lists of tensors cost that ZeRO-3 of DeepSpeed exchanged until 2021.
#include <gtest/gtest.h>

#include "cases.h"
#include "cost/lists.h"
#include "model/read.h"
#include "plan/weights.h"
#include "run/iteration.h"
#include "schedule/exchanged_weights.h"

namespace rehearse {
namespace {

constexpr double kHostOfARank = 239.2e-6 / 8;

TEST(Lists, TakeTheHostAViewAndACopyForEachRank) {
  Profile profile;
  profile.host_collective_s = 100e-6;
  EXPECT_DOUBLE_EQ(list_host_s(profile, 8), 100e-6 + 239.2e-6);
  EXPECT_DOUBLE_EQ(list_host_s(profile, 800), 100e-6 + 800 * kHostOfARank);
}

TEST(Lists, AreCopiedAtTheMemorysBandwidthOrAsFastAsKernelsStart) {
  Profile profile;
  profile.launch_s = 2e-6;
  Cluster cluster;
  cluster.gpu.memory_bandwidth = 2e12;
  EXPECT_DOUBLE_EQ(list_copies_s(profile, cluster, 8, 1e9), 1e-3);
  EXPECT_DOUBLE_EQ(list_copies_s(profile, cluster, 1000, 1e9), 2e-3);
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
  EXPECT_EQ(weights_of(layer_of("gpt3-175b", Recompute::none)).dropped, 0);
  EXPECT_EQ(weights_of(layer_of("gpt2", Recompute::full)).dropped, 0);
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
  const std::vector<std::vector<Weights>> weights = {{{4, 1}, {6, 2}}};
  EXPECT_EQ(weights_of(ops[3], weights).all, 6);
  EXPECT_EQ(weights_of(ops[5], weights).all, 6);
}

double step_s(Framework framework, int dp) {
  Experiment experiment = replicas("gpt2", dp);
  experiment.plan.framework = framework;
  experiment.plan.zero = 3;
  return run_iteration(experiment).report.step_time_s;
}

// GPT-2 has 50 weights of more than 100,000 elements: four in each of twelve layers and two tables. The host
// exchanges each three times and computes nothing meanwhile.
TEST(Lists, AddTheHostsTimeForEachWeightThreeTimes) {
  const Profile profile = read_profile("a100-sxm-80gb");
  for (const int dp : {8, 64}) {
    const double since = step_s(Framework::deepspeed, dp);
    const double then = step_s(Framework::deepspeed_2021, dp);
    const double host = 3 * 50 * (profile.host_collective_s + dp * kHostOfARank);
    EXPECT_NEAR(then - since, host, 0.1 * host) << dp;
  }
}

}  // namespace
}  // namespace rehearse
