// Which divisions of model state over data-parallel ranks are legal?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "plan/comm_group.h"
#include "plan/sharding.h"
#include "small_model.h"

namespace rehearse {
namespace {

using test::small_model;
using ::testing::HasSubstr;

// The broken rules of a plan of 8 data-parallel ranks, one sentence each.
std::string broken(const std::function<void(Plan&)>& change) {
  Plan plan;
  plan.dp = 8;
  plan.global_batch = 64;
  change(plan);
  std::string text;
  for (const Violation& violation : broken_rules(plan, small_model(), plan.gpus()))
    text += to_string(violation) + "\n";
  return text;
}

TEST(ZeroRules, Zero2And3WithPipelineParallelismAreRefusedWithTheReason) {
  for (const int zero : {2, 3}) {
    const auto plan = [&](Plan& p) {
      p.zero = zero;
      p.pp = 2;
      p.framework = Framework::deepspeed;
    };
    EXPECT_THAT(broken(plan), HasSubstr("unsharded gradients over the microbatches"));
    EXPECT_THAT(broken(plan), HasSubstr("nearest legal: zero = 1"));
  }
}

TEST(ZeroRules, FsdpUnderPipelineParallelismIsLegal) {
  for (const Framework framework : {Framework::fsdp, Framework::torchtitan})
    EXPECT_EQ(broken([&](Plan& p) {
                p.zero = 3;
                p.pp = 2;
                p.framework = framework;
                p.reshard_after_forward = p.reduce_each_microbatch = false;
              }),
              "");
}

TEST(ZeroRules, Zero1CombinesWithPipelineAndTensorParallelism) {
  EXPECT_EQ(broken([](Plan& p) {
              p.zero = 1;
              p.pp = p.tp = 4;
              p.overlap_param_gather = true;
            }),
            "");
}

TEST(ZeroRules, ShardingGroupsDivideTheReplicas) {
  EXPECT_EQ(broken([](Plan& p) { p.zero = 3, p.zero_shard = 4; }), "");
  EXPECT_THAT(broken([](Plan& p) { p.zero = 3, p.zero_shard = 3; }),
              HasSubstr("zero shard = 3, dp = 8, cp = 1"));
  EXPECT_THAT(broken([](Plan& p) { p.zero = 3, p.zero_shard = -1; }), HasSubstr("size of a sharding group"));
  EXPECT_THAT(broken([](Plan& p) { p.zero_shard = 4; }),
              HasSubstr("a sharding group needs ZeRO-1 or higher"));
}

TEST(ZeroRules, ValuesOutsideTheirRangeAreNamed) {
  EXPECT_THAT(broken([](Plan& p) { p.zero = 4; }), HasSubstr("nearest legal: zero = 3"));
  EXPECT_THAT(broken([](Plan& p) { p.zero = -1; }), HasSubstr("nearest legal: zero = 0"));
  EXPECT_THAT(broken([](Plan& p) { p.prefetch = -1; }), HasSubstr("prefetch"));
  EXPECT_THAT(broken([](Plan& p) { p.grad_reduce = Precision::fp8; }), HasSubstr("cannot be reduced in fp8"));
}

TEST(ZeroRules, WhatAStageCannotDoIsRefused) {
  EXPECT_THAT(broken([](Plan& p) { p.zero = 3, p.overlap_param_gather = true; }),
              HasSubstr("once per iteration"));
  EXPECT_THAT(broken([](Plan& p) { p.zero = 2, p.reduce_each_microbatch = false; }),
              HasSubstr("after every microbatch"));
  EXPECT_THAT(broken([](Plan& p) { p.zero = 2, p.overlap_grad_reduce = false; }),
              HasSubstr("overlap gradient reduction with backward"));
  EXPECT_THAT(broken([](Plan& p) { p.offload = Offload::optimizer; }),
              HasSubstr("needs a sharded optimizer state"));
  EXPECT_THAT(broken([](Plan& p) { p.offload = Offload::activations; }),
              HasSubstr("follows its forward at once"));
}

TEST(ZeroRules, InternEvoDividesTheOptimizerAloneAndBroadcastsAfterTheStep) {
  const auto of_internevo = [](int zero, bool overlaps) {
    return broken([&](Plan& p) {
      p.framework = Framework::internevo;
      p.zero = zero;
      p.overlap_param_gather = overlaps;
    });
  };
  for (const int zero : {0, 1}) EXPECT_EQ(of_internevo(zero, false), "");
  for (const int zero : {2, 3}) {
    EXPECT_THAT(of_internevo(zero, false), HasSubstr("shards only the optimizer state"));
    EXPECT_THAT(of_internevo(zero, false), HasSubstr("nearest legal: zero = 1"));
  }
  EXPECT_THAT(of_internevo(1, true), HasSubstr("broadcasts parameters after the step"));
}

TEST(ZeroRules, ScalingDividesTheOptimizerAlone) {
  const auto of_scaling = [](int zero) {
    return broken([&](Plan& p) {
      p.framework = Framework::aleph_scaling;
      p.zero = zero;
    });
  };
  for (const int zero : {0, 1}) EXPECT_EQ(of_scaling(zero), "");
  EXPECT_THAT(of_scaling(2), HasSubstr("shards only the optimizer state"));
}

TEST(ZeroRules, GroupsAndExpertsDoNotMix) {
  Model model = small_model();
  model.experts = Experts{8, 2, 512, 0};
  Plan plan;
  plan.dp = plan.ep = 8;
  plan.global_batch = 64;
  plan.zero = 1;
  EXPECT_TRUE(broken_rules(plan, model, 8).empty());
  plan.zero_shard = 4;
  ASSERT_EQ(broken_rules(plan, model, 8).size(), 1U);
  EXPECT_EQ(broken_rules(plan, model, 8)[0].pointer, "zero_shard");
}

TEST(Sharding, SpansContextParallelRanksInEveryOrder) {
  for (const auto& order : {std::array{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp},
                            std::array{Axis::tp, Axis::dp, Axis::pp, Axis::ep, Axis::cp}}) {
    Plan plan;
    plan.tp = 2, plan.cp = 2, plan.dp = 3, plan.pp = 2;
    plan.zero = 1;
    plan.order = order;
    const RankGrid grid(plan);
    for (int rank = 0; rank < grid.size(); ++rank) {
      const std::vector<int> group = CommGroups(plan).ranks(CommGroup::shards, rank);
      EXPECT_EQ(group, grid.replicas(rank));
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
      EXPECT_EQ(group[static_cast<std::size_t>(grid.replica_position(rank))], rank);
    }
  }
}

TEST(Sharding, OfExpertsIsAmongTheirReplicas) {
  Plan plan;
  plan.tp = 2, plan.cp = 2, plan.dp = 2, plan.ep = 2;
  for (const int zero : {0, 1}) {
    plan.zero = zero;
    EXPECT_EQ(CommGroups(plan).ranks(CommGroup::expert_shards, 1), (std::vector{1, 3, 5, 7}));
    EXPECT_EQ(CommGroups(plan).ranks(CommGroup::expert_replicas, 1), std::vector{1});
  }
  plan.etp = 2;
  EXPECT_EQ(CommGroups(plan).ranks(CommGroup::expert_shards, 6), (std::vector{2, 6}));
  plan.ep = 1, plan.zero_shard = 2;  // experts are divided as all else
  EXPECT_EQ(CommGroups(plan).ranks(CommGroup::expert_shards, 6), (std::vector{4, 6}));
  EXPECT_EQ(CommGroups(plan).ranks(CommGroup::expert_replicas, 6), (std::vector{2, 6}));
}

Plan sharded_by(Framework framework) {
  Plan plan;
  plan.dp = 8;
  plan.zero = 3;
  plan.framework = framework;
  plan.grad_reduce = Precision::bf16;
  return plan;
}

TEST(Sharding, GathersFp8WeightsInAByte) {
  Plan plan;
  plan.precision = Precision::fp8;
  EXPECT_EQ(parameter_bytes(plan), 2);
  plan.recipe = Recipe::fp8_weights;
  EXPECT_EQ(parameter_bytes(plan), 1);
  plan.fp8_weight_copies = 1;
  EXPECT_EQ(parameter_bytes(plan), 1);
  plan = sharded_by(Framework::torchtitan);
  plan.precision = Precision::fp8;
  plan.fp8_scaling = Fp8Scaling::tensor_gathered;
  EXPECT_EQ(parameter_bytes(plan), 1);
  EXPECT_EQ(copies(plan).gather, 1 + 1);
  EXPECT_EQ(copies(plan).reduce, 2 + 2);
}

// Where the forward pass does not reshard gathered parameters.
TEST(Sharding, DropsParametersAfterABackwardPassWithoutAPipeline) {
  Plan plan = sharded_by(Framework::fsdp1);
  plan.reshard_after_forward = false;
  EXPECT_TRUE(gathers_each_microbatch(plan));
  plan.reduce_each_microbatch = false;
  EXPECT_FALSE(gathers_each_microbatch(plan)) << "no_sync()";
  plan.framework = Framework::torchtitan;
  EXPECT_TRUE(gathers_each_microbatch(plan));
  plan.pp = 2;
  EXPECT_FALSE(gathers_each_microbatch(plan));
  plan.reshard_after_forward = true;
  EXPECT_TRUE(gathers_each_microbatch(plan));
}

TEST(Copies, OfFsdp2AreOutOfTheGatheredAndIntoTheReducedBuffer) {
  Plan plan = sharded_by(Framework::fsdp);
  EXPECT_EQ(copies(plan).gather, 2 + 2);
  EXPECT_EQ(copies(plan).reduce, 2 + 2);
  plan.grad_reduce = Precision::fp32;
  EXPECT_EQ(copies(plan).reduce, 2 + 4);
  plan.framework = Framework::megatron_core;
  EXPECT_EQ(copies(plan).gather + copies(plan).reduce, 0);
}

TEST(Copies, OfAFlatParameterAreOfItsGradientAlone) {
  Plan plan = sharded_by(Framework::fsdp1);
  EXPECT_EQ(copies(plan).gather, 0);
  EXPECT_EQ(copies(plan).reduce, (2 + 2) + (2 + 2));  // put together, divided
  plan.grad_reduce = Precision::fp32;
  EXPECT_EQ(copies(plan).reduce, (2 + 2) + (2 + 4) + (4 + 4));  // and cast
  plan.dp = 1;
  EXPECT_EQ(copies(plan).reduce, 0);
}

TEST(Sharding, GroupsCoverTheReplicasOnceAndMeetInOneRank) {
  Plan plan;
  plan.tp = 2;
  plan.dp = 12;
  plan.zero = 2;
  plan.zero_shard = 4;
  const CommGroups groups(plan);
  for (int rank = 0; rank < plan.gpus(); ++rank) {
    const std::vector<int> shard = groups.ranks(CommGroup::shards, rank),
                           replicas = groups.ranks(CommGroup::shard_replicas, rank);
    EXPECT_EQ(shard.size(), 4U);
    EXPECT_EQ(replicas.size(), 3U);
    std::set<int> common;
    for (const int a : shard)
      for (const int b : replicas)
        if (a == b) common.insert(a);
    EXPECT_EQ(common, std::set{rank});
  }
}

}  // namespace
}  // namespace rehearse
