// Ranks that differ are simulated separately; the others may stay folded.
#include "run/conditions.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "plan/sharding.h"
#include "run/jitter.h"
#include "run/reference.h"
#include "traffic.h"

namespace rehearse {
namespace {

using testing::ElementsAre;

Conditions with_slow(const std::string& list) {
  Conditions conditions;
  conditions.slow = parse_slow(list);
  return conditions;
}

struct Case {
  Plan plan;
  Cluster cluster;
  Conditions conditions;
};

Loads loads_of(const Case& what, Fold fold, Schedule& schedule, Tasks& tasks) {
  const Plan& plan = what.plan;
  const auto stages = static_cast<std::size_t>(plan.stages());
  GradientSync sync{plan.overlap_grad_reduce, true, plan.dp, std::vector<int>(stages, 2)};
  sync.across = shard_replicas(plan) > 1;
  schedule = complete_schedule(plan, sync);
  tasks = derive_tasks(schedule, plan,
                       {fold, false, false, replicas_to_walk(plan, what.cluster, what.conditions)});
  MessageSizes sizes{20e6, std::vector<double>(stages, 300e6), 50e6};
  sizes.parameter_bytes.assign(stages, 150e6);
  return make_loads(schedule, tasks, plan, what.cluster, flat_profile(), {even_times(plan, 2e-3)}, sizes,
                    what.conditions);
}

double step_time(const Case& what, Fold fold) {
  Schedule schedule;
  Tasks tasks;
  const Loads loads = loads_of(what, fold, schedule, tasks);
  const auto end = in_child([&] { return std::vector<double>{simulate(schedule, tasks, loads).end()}; });
  return end.has_value() ? end->front() : -1;
}

Case small_case(int tp, int dp, int pp) {
  Case what{pipeline_plan(pp, 1, 2 * pp * dp), small_cluster(4, 4), {}};
  what.plan.tp = tp;
  what.plan.dp = dp;
  what.conditions.slow = {};
  return what;
}

TEST(Walked, OneReplicaWhenAllAreAlike) {
  const Case what = small_case(2, 8, 2);
  EXPECT_THAT(replicas_to_walk(what.plan, what.cluster, {}), ElementsAre(0));
}

TEST(Walked, TheStragglersReplicaAndOneForTheRest) {
  Case what = small_case(2, 8, 2);
  what.conditions.slow = parse_slow("rank=7:0.5");  // replica 3
  EXPECT_THAT(replicas_to_walk(what.plan, what.cluster, what.conditions), ElementsAre(0, 3));
}

TEST(Walked, ShardingGroupsAndPositionsAreKeptApart) {
  Case what = small_case(1, 8, 1);
  what.plan.zero = 1;
  what.plan.zero_shard = 4;
  what.conditions.slow = parse_slow("rank=6:0.5");  // group 1, position 2
  EXPECT_THAT(replicas_to_walk(what.plan, what.cluster, what.conditions), ElementsAre(0, 2, 4, 6));
}

TEST(Walked, AllWhenDurationsVary) {
  Case what = small_case(2, 4, 2);
  what.conditions.jitter.compute = 0.1;
  EXPECT_THAT(replicas_to_walk(what.plan, what.cluster, what.conditions), ElementsAre(0, 1, 2, 3));
}

RC_GTEST_PROP(Straggler, FoldedEqualsUnfoldedWhereverItIs, ()) {
  Case what = small_case(*rc::gen::element(1, 2, 4), *rc::gen::element(2, 4, 8), *rc::gen::element(1, 2));
  what.plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  what.plan.zero = *rc::gen::inRange(0, 2);
  if (what.plan.zero > 0) what.plan.zero_shard = *rc::gen::element(0, 2);
  const int rank = *rc::gen::inRange(0, what.plan.gpus());
  const double speed = *rc::gen::inRange(3, 10) / 10.0;
  const std::string place = fmt::format("{}.{}", rank / 4, rank % 4);
  const std::string slow = *rc::gen::element("nic=" + place, "nvlink=" + place, fmt::format("rank={}", rank));
  // Shards inside a node over a slow NVLink are not told apart exactly; prepare() folds nothing there.
  RC_PRE((!slow.starts_with("nvlink") || what.plan.zero == 0 || what.plan.zero_shard == 0));
  what.conditions.slow = parse_slow(fmt::format("{}:{}", slow, speed));
  const double folded = step_time(what, Fold::replicas), unfolded = step_time(what, Fold::none);
  RC_ASSERT(folded > 0);
  RC_ASSERT(std::abs(folded - unfolded) <= 1e-9 * unfolded + 2e-9);
}

TEST(Straggler, AtHalfSpeedDoublesAStepOfPureCompute) {
  Case what = small_case(1, 1, 1);
  const double healthy = step_time(what, Fold::replicas);
  what.conditions.slow = parse_slow("rank=0:0.5");
  EXPECT_NEAR(step_time(what, Fold::replicas), 2 * healthy, 1e-9);
}

TEST(Straggler, ExpertParallelPeersWaitForIt) {
  Plan plan;
  plan.dp = plan.ep = 4;
  const Conditions conditions = with_slow("rank=2:0.5");
  EXPECT_DOUBLE_EQ(speed_of(plan, conditions, 0), 0.5);
  plan.ep = 1;
  EXPECT_DOUBLE_EQ(speed_of(plan, conditions, 0), 1);
}

struct Blocked {
  const char* name;
  int tp, dp, pp, gpus, nics, leaf;
  double ratio;
};
class FoldedFabric : public testing::TestWithParam<Blocked> {};

// Where all leaf switches hold equal ranks, all see the same traffic and folding loses nothing.
TEST_P(FoldedFabric, GivesTheUnfoldedStepTimeWhereLeavesAreAlike) {
  const Blocked& shape = GetParam();
  Case what = small_case(shape.tp, shape.dp, shape.pp);
  what.cluster = leafy_cluster(shape.gpus, shape.nics, shape.leaf, shape.ratio);
  const double folded = step_time(what, Fold::replicas), unfolded = step_time(what, Fold::none);
  Cluster open = what.cluster;
  open.fabric.levels.front().oversubscription = 1;
  ASSERT_GT(folded, 0);
  EXPECT_GT(folded, step_time({what.plan, open, {}}, Fold::replicas));
  EXPECT_NEAR(folded, unfolded, 1e-6 * unfolded);
}

INSTANTIATE_TEST_SUITE_P(Shapes, FoldedFabric,
                         testing::Values(Blocked{"RingOverLeavesOfOneNode", 4, 4, 1, 4, 4, 1, 2},
                                         Blocked{"SevenToOne", 4, 4, 1, 4, 4, 1, 7},
                                         Blocked{"SharedNics", 4, 4, 1, 4, 2, 1, 2},
                                         Blocked{"OneGpuANode", 1, 4, 1, 1, 1, 1, 4}),
                         [](const auto& shape) { return shape.param.name; });

TEST(Placement, ScatteredNodesCrossTheUplinksThatNeighboursDoNotNeed) {
  Case what = small_case(4, 4, 1);
  what.cluster = leafy_cluster(4, 4, 4, 16);
  what.cluster.max_nodes = 16;
  const double compact = step_time(what, Fold::none);
  what.conditions.placement = Placement::scattered;
  const double scattered = step_time(what, Fold::none);
  EXPECT_GT(scattered, 1.5 * compact);
  what.cluster.fabric.levels.front().oversubscription = 1;
  EXPECT_NEAR(step_time(what, Fold::none), compact, 1e-9);
}

TEST(Placement, DealsNodesToLeavesInTurn) {
  Cluster cluster = leafy_cluster(1, 1, 4, 2);
  cluster.max_nodes = 12;
  Conditions conditions;
  conditions.placement = Placement::scattered;
  EXPECT_THAT(place_nodes(cluster, 5, conditions), ElementsAre(0, 4, 8, 1, 5));
  conditions.placement = Placement::compact;
  EXPECT_THAT(place_nodes(cluster, 3, conditions), ElementsAre(0, 1, 2));
}

RC_GTEST_PROP(Placement, GivesEachNodeOnce, ()) {
  Cluster cluster = leafy_cluster(1, 1, *rc::gen::inRange(1, 9), 2);
  cluster.max_nodes = *rc::gen::inRange(1, 60);
  Conditions conditions;
  conditions.placement = *rc::gen::element(Placement::compact, Placement::scattered, Placement::random);
  conditions.seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::int64_t nodes = *rc::gen::inRange(1, cluster.max_nodes + 1);
  std::vector<std::int64_t> placed = place_nodes(cluster, nodes, conditions);
  std::sort(placed.begin(), placed.end());
  RC_ASSERT(std::adjacent_find(placed.begin(), placed.end()) == placed.end());
  RC_ASSERT(placed.front() >= 0 && placed.back() < cluster.max_nodes);
}

TEST(ParseSlow, ReadsRanksNicsAndLinks) {
  const std::vector<Slow> slow = parse_slow("rank=17:0.8,nic=3.1:0.5,link=leaf0.rail2:0,nvlink=2.7:0.9");
  ASSERT_EQ(slow.size(), 4U);
  EXPECT_EQ(slow[3].gpu.node, 2);
  EXPECT_EQ(slow[3].gpu.gpu, 7);
  EXPECT_EQ(slow[0].rank, 17);
  EXPECT_DOUBLE_EQ(slow[0].speed, 0.8);
  EXPECT_EQ(slow[1].nic.node, 3);
  EXPECT_EQ(slow[1].nic.nic, 1);
  EXPECT_EQ(slow[2].link, "leaf0.rail2");
}

TEST(ParseSlow, RefusesWhatIsNoSuchList) {
  for (const char* text : {"rank", "rank=", "rank=1", "rank=1:", "rank=x:0.5", "nic=3:0.5", "nic=3.:1",
                           "gpu=1:0.5", "rank=1:0.5,,", "rank=1:0.5 ", "=:1", ":", ","})
    EXPECT_THROW(parse_slow(text), InputError) << text;
}

TEST(ParseSlow, PartsMustExistAndSpeedsBeSpeeds) {
  const Plan plan = pipeline_plan(4, 1, 4);
  for (const char* text : {"rank=4:0.5", "rank=-1:0.5", "rank=1:1.5", "rank=1:-1", "rank=1:0", "rank=1:nan",
                           "nic=0.9:0.5", "nic=-1.0:0.5", "nvlink=0.4:0.5", "nvlink=0.0:0"})
    EXPECT_THROW(require_conditions(with_slow(text), plan, small_cluster(4, 4)), InputError) << text;
}

TEST(ParseSlow, LinksAreThoseOfTheFabric) {
  const Plan plan = pipeline_plan(4, 1, 4);
  Cluster cluster = small_cluster(1, 1);
  EXPECT_THROW(require_conditions(with_slow("link=leaf0:0.5"), plan, cluster), InputError);
  cluster.fabric.kind = FabricKind::fat_tree;
  cluster.fabric.levels = {{"leaf", 2, 1}};
  EXPECT_NO_THROW(require_conditions(with_slow("link=leaf1:0.5"), plan, cluster));
  EXPECT_THROW(require_conditions(with_slow("link=leaf2:0.5"), plan, cluster), InputError);
  EXPECT_THROW(require_conditions(with_slow("link=leaf1.rail0:0.5"), plan, cluster), InputError);
}

TEST(Jitter, IsTheSameForTheSameSeedAndAnotherForAnother) {
  Case what = small_case(1, 2, 2);
  what.conditions.jitter = {0.1, 0.3};
  Schedule schedule;
  Tasks tasks;
  const Loads loads = loads_of(what, Fold::replicas, schedule, tasks);
  const auto end = [&](std::uint64_t seed, int iteration) {
    what.conditions.seed = seed;
    return reference(schedule, tasks, jittered(loads, what.conditions, iteration)).end();
  };
  EXPECT_EQ(end(1, 0), end(1, 0));
  EXPECT_NE(end(1, 0), end(2, 0));
  EXPECT_NE(end(1, 0), end(1, 1));
}

TEST(Jitter, HasMeanOneAndTheVariationAskedFor) {
  Loads loads;
  loads.fixed_s.assign(200'000, 1.0);
  loads.transfer_s.assign(loads.fixed_s.size(), 0);
  loads.first_flow.assign(loads.fixed_s.size() + 1, 0);
  Conditions conditions;
  conditions.jitter.compute = 0.25;
  const Spread spread = spread_of(jittered(loads, conditions, 0).fixed_s);
  EXPECT_NEAR(spread.mean_s, 1, 4 * 0.25 / std::sqrt(200'000.0));
  EXPECT_NEAR(spread.deviation_s, 0.25, 0.005);
  EXPECT_NEAR(spread.median_s, 1 / std::sqrt(1 + 0.25 * 0.25), 0.005);
}

// Three flows that share a link carry whole bytes each, which both engines count.
TEST(Jitter, LeavesTransfersAsLongAsTheirWholeBytesTake) {
  Loads loads;
  loads.fixed_s = loads.transfer_s = {0};
  loads.first_flow = {0, 3};
  loads.flows = {{{0, 1}, 10}, {{0, 2}, 20}, {{0, 3}, 30}};
  loads.capacity = {10, 100, 100, 100};
  loads.ends = {{0}, {1}, {2}, {3}};
  Conditions conditions;
  conditions.jitter.messages = 0.3;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    conditions.seed = seed;
    const Loads varied = jittered(loads, conditions, 0);
    double bytes = 0;
    for (const Flow& flow : varied.flows) bytes += static_cast<double>(flow.bytes);
    EXPECT_EQ(varied.transfer_s[0], bytes / 10) << seed;
  }
}

TEST(Iterations, WithoutJitterAllTakeTheSameTime) {
  const Case what = small_case(2, 2, 2);
  Schedule schedule;
  Tasks tasks;
  const Loads loads = loads_of(what, Fold::replicas, schedule, tasks);
  const auto ends = in_child([&] {
    std::vector<double> each;
    Simulator simulator(loads);
    for (int i = 0; i < 5; ++i) each.push_back(simulator.run(schedule, tasks, loads).end());
    return each;
  });
  ASSERT_TRUE(ends.has_value());
  ASSERT_EQ(ends->size(), 5U);
  for (const double end : *ends) EXPECT_NEAR(end, ends->front(), 1e-9);
}

TEST(Spread, OfKnownNumbers) {
  const Spread spread = spread_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(spread.mean_s, 2.5);
  EXPECT_DOUBLE_EQ(spread.median_s, 2.5);
  EXPECT_DOUBLE_EQ(spread.deviation_s, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(spread.p95_s, 3.85);
  EXPECT_DOUBLE_EQ(spread.least_s, 1);
  EXPECT_DOUBLE_EQ(spread.most_s, 4);
}

}  // namespace
}  // namespace rehearse
