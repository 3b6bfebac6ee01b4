// Every message of a step: op, group and bytes of a call.
#include "plan/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/sharding.h"
#include "plan/small_model.h"

namespace rehearse {
namespace {

using test::small_model;

std::vector<Collective> sent(const Model& model, const Plan& plan, OpKind kind, int stage = 0) {
  std::vector<Collective> found;
  for (const StepMessage& message : step_messages(make_work(model, plan), model, plan))
    if (message.kind == kind && message.stage == stage) found.push_back(message.what);
  return found;
}

double bytes_of(const std::vector<Collective>& messages) {
  return std::accumulate(messages.begin(), messages.end(), 0.0, [](double sum, const Collective& message) {
    return sum + message.bytes * static_cast<double>(message.calls);
  });
}

Plan replicas(Framework framework, int zero) {
  Plan plan;
  plan.framework = framework;
  plan.dp = 4;
  plan.zero = zero;
  plan.bucket_bytes = 1e5;
  return plan;
}

TEST(Messages, SumGradientsInBucketsOfEqualSize) {
  const Plan plan = replicas(Framework::megatron_core, 1);
  const Model model = small_model();
  const double gradients = make_work(model, plan).parameters(0) * gradient_wire_bytes(plan);
  const std::vector<Collective> buckets = sent(model, plan, OpKind::reduce_grad);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].op, CollectiveOp::reduce_scatter);
  EXPECT_EQ(buckets[0].group, CommGroup::shards);
  EXPECT_GT(buckets[0].calls, 1);
  EXPECT_DOUBLE_EQ(bytes_of(buckets), gradients);
}

// ZeRO-1 of nanotron and of Aleph Alpha's Scaling sums whole gradients, too (plan/sharding.h,
// scatters_gradients()).
TEST(Messages, SumWholeGradientsWhereAFrameworkDoes) {
  for (const Framework framework : {Framework::nanotron, Framework::aleph_scaling, Framework::internevo})
    for (const Collective& message : sent(small_model(), replicas(framework, 1), OpKind::reduce_grad))
      EXPECT_EQ(message.op, CollectiveOp::all_reduce) << to_string(framework);
}

TEST(Messages, GatherUnitsOfTheirOwnSizeWithZero3) {
  const Plan plan = replicas(Framework::torchtitan, 3);
  const Model model = small_model();
  const std::vector<Collective> gathers = sent(model, plan, OpKind::unshard);
  EXPECT_EQ(gathers.size(), 3U);  // with the embedding, alone, with the head
  EXPECT_LT(gathers[1].bytes, gathers[0].bytes);
  EXPECT_NEAR(bytes_of(gathers), make_work(model, plan).parameters(0) * parameter_bytes(plan), 1e-3);
}

TEST(Messages, BroadcastWhatEachOwnerHas) {
  const Plan plan = replicas(Framework::internevo, 1);
  const Model model = small_model();
  const std::vector<Collective> owned = sent(model, plan, OpKind::unshard);
  for (const Collective& message : owned) EXPECT_EQ(message.op, CollectiveOp::broadcast);
  EXPECT_EQ(bytes_of(owned), make_work(model, plan).parameters(0) * parameter_bytes(plan));
}

TEST(Messages, SumExpertsOverTheirOwnReplicas) {
  Plan plan = replicas(Framework::megatron_core, 1);
  plan.ep = 2;
  Model model = small_model();
  model.experts = Experts{8, 2, 32, 0, 0, 1, true};
  double experts = 0;
  for (const Collective& message : sent(model, plan, OpKind::reduce_grad))
    if (message.group == CommGroup::expert_shards)
      experts += message.bytes * static_cast<double>(message.calls);
  EXPECT_EQ(group_size(CommGroup::expert_shards, plan), 2);
  EXPECT_NEAR(experts, make_work(model, plan).expert_parameters(0) * gradient_wire_bytes(plan), 1e-3);
  plan.ep = 4;  // each expert is on one rank
  for (const Collective& message : sent(model, plan, OpKind::reduce_grad))
    EXPECT_EQ(message.group, CommGroup::shards);
}

// Before core 0.10, replicas of an expert also lie along cp.
TEST(Messages, SumExpertsOverContextParallelRanksToo) {
  Plan plan = replicas(Framework::megatron_core, 1);
  plan.cp = plan.ep = 2;
  plan.core_release = 9;
  EXPECT_EQ(group_size(CommGroup::expert_shards, plan), plan.edp());
}

TEST(Messages, GoToGroupsOfTheSizeThatIsCounted) {
  Plan experts = replicas(Framework::megatron_core, 1), early = experts, v_shaped;
  experts.tp = experts.cp = experts.ep = experts.etp = 2;
  early.cp = early.ep = 2;
  early.core_release = 9;
  v_shaped.pp = v_shaped.vpp = 2;
  v_shaped.schedule = ScheduleName::zb_v;
  Plan in_groups = replicas(Framework::torchtitan, 3), pipeline;
  in_groups.zero_shard = 2;
  pipeline.pp = 2;
  for (const Plan& plan : {experts, early, v_shaped, in_groups, pipeline}) {
    const CommGroups groups(plan);
    for (int kind = 0; kind <= static_cast<int>(CommGroup::host); ++kind) {
      const auto group = static_cast<CommGroup>(kind);
      for (int rank = 0; rank < plan.gpus(); ++rank)
        EXPECT_EQ(groups.size(group), static_cast<int>(groups.ranks(group, rank).size())) << kind;
    }
  }
}

TEST(Messages, CopyExpertsWithoutReplicasToTheHost) {
  Plan plan = replicas(Framework::megatron_core, 1);
  plan.ep = 4;
  plan.offload = Offload::optimizer;
  Model model = small_model();
  model.experts = Experts{8, 2, 32, 0, 0, 1, true};
  const Work work = make_work(model, plan);
  const double stepped = (work.parameters(0) - work.expert_parameters(0)) / 4 + work.expert_parameters(0);
  EXPECT_NEAR(bytes_of(sent(model, plan, OpKind::offload_grad)), stepped * gradient_wire_bytes(plan), 1e-3);
}

TEST(Messages, GatherPartsThatArriveFromAnotherStage) {
  Plan plan;
  plan.tp = plan.pp = 2;
  plan.scatter_gather = true;
  const auto gathers = [&](int stage) {
    const std::vector<Collective> all = sent(small_model(), plan, OpKind::forward, stage);
    return std::ranges::count(all, CollectiveOp::all_gather, &Collective::op);
  };
  EXPECT_EQ(gathers(1) - gathers(0), 1);
}

TEST(Messages, OfTheEmbeddingAreNoneWhereBothEndsAreOneRanks) {
  Model model = small_model();
  model.tied_embeddings = true;
  Plan plan;
  plan.pp = 2;
  EXPECT_EQ(sent(model, plan, OpKind::reduce_tied, 1).size(), 1U);
  EXPECT_EQ(sent(model, plan, OpKind::send_forward, 0).size(), 1U);
  plan.vpp = 2;
  plan.schedule = ScheduleName::zb_v;
  EXPECT_TRUE(sent(model, plan, OpKind::reduce_tied, 3).empty());
  EXPECT_TRUE(sent(model, plan, OpKind::send_forward, 1).empty());  // the microbatch turns round on this rank
}

}  // namespace
}  // namespace rehearse
