// Bytes leave a GPU on the links that its groups span.
#include "result/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "cases.h"

namespace rehearse {
namespace {

Report report_of(const Plan& plan, std::vector<CommunicationLine> lines, int gpus_per_node = 8) {
  Report report;
  report.plan = plan;
  report.facts.gpus_per_node = gpus_per_node;
  report.communication = std::move(lines);
  return report;
}

Plan plan_of(int tp, int pp, int dp) {
  Plan plan = test::small_plan(pp, 1, 8, dp);
  plan.tp = tp;
  return plan;
}

CommunicationLine line(const std::string& kind, const char* op, int ranks,
                       CommGroup of_replicas = CommGroup::shards) {
  const std::map<std::string, CommGroup> groups = {{"tp", CommGroup::tensor},
                                                   {"pp", CommGroup::pipeline},
                                                   {"dp", of_replicas},
                                                   {"ep", CommGroup::expert},
                                                   {"offload", CommGroup::host}};
  return {kind, op, groups.at(kind), ranks, 1, 1000, 0, 0};
}

LinkTraffic only(const Report& report) {
  const std::vector<LinkTraffic> traffic = link_traffic(report);
  EXPECT_EQ(traffic.size(), 1u);
  return traffic.front();
}

TEST(Traffic, OfAGroupInsideANodeStaysThere) {
  const LinkTraffic tp = only(report_of(plan_of(8, 1, 4), {line("tp", "all_gather", 8)}));
  EXPECT_DOUBLE_EQ(tp.gpu_link, 875);
  EXPECT_EQ(tp.nic, 0);
  EXPECT_DOUBLE_EQ(only(report_of(plan_of(8, 1, 4), {line("tp", "all_reduce", 8)})).gpu_link, 1750);
}

TEST(Traffic, OfAGroupWithOneMemberANodeLeavesIt) {
  const LinkTraffic dp = only(report_of(plan_of(8, 1, 4), {line("dp", "all_reduce", 4)}));
  EXPECT_EQ(dp.gpu_link, 0);
  EXPECT_DOUBLE_EQ(dp.nic, 1500);
}

TEST(Traffic, OfARingOverNodesLeavesThroughTheNicOfEachMember) {
  // tp 2: a node holds four replicas, so each of them carries a quarter of the ring across.
  const LinkTraffic dp = only(report_of(plan_of(2, 1, 16), {line("dp", "all_reduce", 16)}));
  EXPECT_DOUBLE_EQ(dp.nic, 1875.0 / 4);
  EXPECT_DOUBLE_EQ(dp.gpu_link, 1875.0 * 3 / 4);
}

// A broadcast takes each byte over all edges of the ring but one, wherever it begins.
TEST(Traffic, OfOwnersIsAnAllReduceAndAllParametersOnce) {
  Plan plan = plan_of(8, 1, 4);
  plan.framework = Framework::internevo;
  plan.zero = 1;
  const auto nic = [&plan](const char* op, int ranks, CommGroup group = CommGroup::shards) {
    return only(report_of(plan, {line("dp", op, ranks, group)})).nic;
  };
  EXPECT_DOUBLE_EQ(nic("all_reduce", 4), 1500);
  EXPECT_DOUBLE_EQ(nic("broadcast", 4), 750);
  plan.zero_shard = 2;  // groups of two: scattered in each, summed across, broadcast in each
  EXPECT_DOUBLE_EQ(nic("reduce_scatter", 2), 500);
  EXPECT_DOUBLE_EQ(nic("all_reduce", 2, CommGroup::shard_replicas), 1000);
  EXPECT_DOUBLE_EQ(nic("broadcast", 2), 500);
}

TEST(Traffic, OfAPipelineGoesWhereItsNeighboursAre) {
  EXPECT_DOUBLE_EQ(only(report_of(plan_of(8, 4, 1), {line("pp", "send_receive", 2)})).nic, 500);
  EXPECT_DOUBLE_EQ(only(report_of(plan_of(2, 4, 1), {line("pp", "send_receive", 2)})).gpu_link, 500);
  // tp 4, pp 4 on nodes of 8: the second stage has one neighbour in its node and one beyond.
  Report report = report_of(plan_of(4, 4, 1), {line("pp", "send_receive", 2)});
  report.critical_rank = 1;
  EXPECT_DOUBLE_EQ(only(report).nic, 250);
}

TEST(Traffic, OfExpertsIsAsMuchToEachOfTheOthers) {
  Plan plan = plan_of(1, 1, 16);
  plan.ep = 16;
  const LinkTraffic ep = only(report_of(plan, {line("ep", "all_to_all", 16)}));
  EXPECT_DOUBLE_EQ(ep.gpu_link, 1000.0 * 7 / 16);
  EXPECT_DOUBLE_EQ(ep.nic, 1000.0 * 8 / 16);
}

TEST(Traffic, OfRowsThatGoToEachRankOnceCrossesToEachNodeOnce) {
  Plan plan = plan_of(1, 1, 16);
  plan.ep = 16;
  Report report = report_of(plan, {line("ep", "dispatch", 16)});
  report.model.experts = Experts{};
  report.model.experts->count = report.model.experts->per_token = 16;  // every row to every rank
  EXPECT_DOUBLE_EQ(only(report).gpu_link, 1000.0 * 7 / 8);
  EXPECT_DOUBLE_EQ(only(report).nic, 1000.0 * 2 / 16 / 2);
  report.model.experts->per_token = 1;  // each row to one rank
  EXPECT_DOUBLE_EQ(only(report).nic, 1000.0 / 2);
}

TEST(Traffic, OfOffloadIsTheHosts) {
  EXPECT_EQ(only(report_of(plan_of(1, 1, 1), {line("offload", "copy_to_host", 1)})).host, 1000);
}

RC_GTEST_PROP(Traffic, IsWhatTheCollectiveSendsWhereverItsMembersAre, ()) {
  const int tp = *rc::gen::element(1, 2, 4, 8), pp = *rc::gen::element(1, 2, 4),
            dp = *rc::gen::element(1, 2, 8);
  const int gpus_per_node = *rc::gen::element(1, 4, 8, 16);
  const Report report = report_of(
      plan_of(tp, pp, dp), {line("tp", "reduce_scatter", tp), line("dp", "all_reduce", dp)}, gpus_per_node);
  const std::vector<LinkTraffic> traffic = link_traffic(report);
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-9; };
  RC_ASSERT(near(traffic[0].gpu_link + traffic[0].nic, 1000.0 * (tp - 1) / tp));
  RC_ASSERT(near(traffic[1].gpu_link + traffic[1].nic, 2000.0 * (dp - 1) / dp));
  if (tp * pp * dp <= gpus_per_node) RC_ASSERT(traffic[0].nic + traffic[1].nic == 0);
  if (gpus_per_node == 1) RC_ASSERT(traffic[0].gpu_link + traffic[1].gpu_link == 0);
}

TEST(Traffic, OfNothingIsNothing) {
  EXPECT_TRUE(link_traffic(Report{}).empty());
}

}  // namespace
}  // namespace rehearse
