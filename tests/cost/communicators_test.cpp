// Which groups open communicators, on whose GPUs.
#include "cost/communicators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

constexpr double kMiB = 1024.0 * 1024;
using Held = std::vector<std::pair<std::string, double>>;

struct Machine {
  Cluster cluster;
  Profile profile;
};

const Machine& machine(const std::string& name) {
  static std::map<std::string, Machine> machines;
  const auto found = machines.find(name);
  if (found != machines.end()) return found->second;
  const Cluster cluster = read_cluster(name);
  return machines.emplace(name, Machine{cluster, read_profile(cluster.profile)}).first->second;
}

Plan plan_of(int tp, int pp, int dp) {
  Plan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  plan.global_batch = 8 * dp;
  return plan;
}

Held held(const Plan& plan, int pipeline_rank, const std::string& model_name = "gpt3-175b",
          const std::string& cluster = "dgx-a100-80gb") {
  const Model model = read_model(model_name);
  const Machine& on = machine(cluster);
  return communicator_bytes(make_work(model, plan), model, plan, on.cluster,
                            on.profile)[static_cast<std::size_t>(pipeline_rank)];
}

std::vector<std::string> names(const Held& held) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : held) names.push_back(name);
  return names;
}

double bytes(const Held& held, const std::string& name) {
  for (const auto& [each, bytes] : held)
    if (each == name) return bytes;
  return -1;
}

TEST(Communicators, OfOneGpuAreNone) {
  EXPECT_THAT(held(plan_of(1, 1, 1), 0), ElementsAre());
}

TEST(Communicators, OfPartsOfOneGpuAreNone) {
  const Plan plan = plan_of(1, 1, 4);
  const Model model = read_model("gpt3-175b");
  EXPECT_THAT(communicator_bytes(make_work(model, plan), model, plan, read_cluster("h100-quarters"),
                                 machine("dgx-h100").profile)
                  .front(),
              ElementsAre());
}

TEST(Communicators, AreOneForEachGroupThatSpeaks) {
  const Plan plan = plan_of(8, 4, 2);
  EXPECT_THAT(names(held(plan, 0)), ElementsAre("world", "model", "tp", "pp", "dp", "embedding"));
  EXPECT_THAT(names(held(plan, 1)), ElementsAre("world", "model", "tp", "pp", "dp"));
  EXPECT_THAT(names(held(plan, 3)), ElementsAre("world", "model", "tp", "pp", "dp", "embedding"));
  EXPECT_THAT(names(held(plan_of(1, 1, 16), 0)), ElementsAre("world", "dp"));
}

TEST(Communicators, OfFsdpShardOverTheWorlds) {
  Plan plan = plan_of(1, 1, 16);
  plan.framework = Framework::fsdp;
  plan.zero = 3;
  EXPECT_THAT(names(held(plan, 0)), ElementsAre("dp"));
}

TEST(Communicators, OfGroupsAsLargeAsAllReplicasAreTheWorlds) {
  Plan plan = plan_of(1, 1, 8);
  plan.framework = Framework::torchtitan;
  plan.zero = 3;
  const Held all = held(plan, 0);
  plan.zero_shard = 8;
  EXPECT_EQ(held(plan, 0), all);
  plan.zero_shard = 4;
  EXPECT_NE(held(plan, 0), all);
}

TEST(Communicators, OfThePipelineWereTheWorldsIn2021) {
  Plan plan = plan_of(8, 4, 2);
  plan.framework = Framework::megatron_2021;
  EXPECT_THAT(names(held(plan, 1)), ElementsAre("world", "model", "tp", "dp"));
  EXPECT_EQ(bytes(held(plan, 1), "tp"), 2 * 24 * 12 * kMiB);  // ring and tree, whatever runs
}

TEST(Communicators, OfAPipelineHoldAPoolAcrossNodesAndChannelsInOne) {
  const Held far = held(plan_of(8, 4, 2), 1), ends = held(plan_of(8, 4, 2), 0);
  EXPECT_EQ(bytes(far, "pp"), bytes(ends, "pp"));
  EXPECT_EQ(bytes(far, "pp"), 8 * kMiB);
  const Plan near = plan_of(2, 4, 1);
  EXPECT_EQ(bytes(held(near, 0), "pp"), 32 * 12 * kMiB);
  EXPECT_EQ(bytes(held(near, 1), "pp"), 2 * bytes(held(near, 0), "pp"));  // two neighbours
}

TEST(Communicators, OfTheTensorGroupDoNotGrowWithTheWorld) {
  EXPECT_EQ(bytes(held(plan_of(8, 4, 2), 0), "tp"), bytes(held(plan_of(8, 4, 64), 0), "tp"));
}

TEST(Communicators, OfExpertsConnectEachToEach) {
  Plan plan = plan_of(1, 1, 8);
  plan.ep = 8;
  EXPECT_EQ(bytes(held(plan, 0, "mixtral-8x7b", "dgx-h100"), "ep"), 7 * 32 * 12 * kMiB);
}

TEST(Context, IsThePublishedOneOfTheGpuAndItsTime) {
  Plan plan = plan_of(8, 1, 1);
  EXPECT_EQ(context_bytes(machine("dgx-h100").cluster, plan), 1.06e9);
  EXPECT_EQ(context_bytes(machine("dgx-a100-80gb").cluster, plan), 1343 * kMiB);
  EXPECT_EQ(context_bytes(read_cluster("cpu-node"), plan), 0);
  EXPECT_EQ(context_bytes(read_cluster("h100-quarters"), plan), 1.06e9 / 4) << "one for the whole GPU";
}

}  // namespace
}  // namespace rehearse
