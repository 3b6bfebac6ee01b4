// Links with a rate of their own carry the bytes of a message, however long its NIC takes.
#include <gtest/gtest.h>

#include "cases.h"
#include "in_child.h"
#include "run/reference.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

constexpr double kTorusBytes = 1e9;
constexpr double kTorusStart = 5e-6;      // of a message across nodes
constexpr double kTorusEfficiency = 0.8;  // of a NIC

struct TorusRates {
  double nic, link;  // bytes/s
};

// Four nodes of one GPU in a ring.
Cluster torus_of(const TorusRates& rates) {
  Cluster cluster = small_cluster(1, 1);
  cluster.node.nic.bandwidth = rates.nic;
  cluster.fabric.kind = FabricKind::torus;
  cluster.fabric.extents = {4};
  cluster.fabric.link_bandwidth = rates.link;
  cluster.max_nodes = 4;
  return cluster;
}

Profile profile_of_torus() {
  Profile profile = flat_profile();
  for (LinkCost& link : profile.links)
    if (link.kind == "test-nic") link.efficiency = kTorusEfficiency;
  return profile;
}

// Step of one microbatch whose kernels take no time, by both engines.
double torus_step_s(const Plan& plan, const TorusRates& rates, const MessageSizes& sizes,
                    const Prices& prices) {
  const GradientSync sync{false, false, plan.dp, std::vector<int>(static_cast<std::size_t>(plan.pp), 1)};
  const Schedule schedule = complete_schedule(plan, sync);
  const Tasks tasks = derive_tasks(schedule, plan, {Fold::none, false, false});
  const Loads loads = make_loads(schedule, tasks, plan, torus_of(rates), profile_of_torus(), prices, sizes);
  const double longest_s = reference(schedule, tasks, loads).end();
  const auto simulated = in_child([&] { return std::vector{simulate(schedule, tasks, loads).end()}; });
  EXPECT_NEAR(simulated.value_or(std::vector{-1.0}).front(), longest_s, 1e-7 * longest_s);
  return longest_s;
}

class TorusLinks : public testing::TestWithParam<TorusRates> {
 protected:
  // The slower of the NIC at its effective rate and the link at its own rate.
  static double slowest_s(double bytes) {
    return std::max(bytes / (kTorusEfficiency * GetParam().nic), bytes / GetParam().link);
  }
};

TEST_P(TorusLinks, AMessageTakesItsNicOrTheLinkWhicheverIsSlower) {
  const Plan plan = pipeline_plan(2, 1, 1);
  const double step = torus_step_s(plan, GetParam(), {kTorusBytes, {0, 0}, 0}, {even_times(plan, 0)});
  EXPECT_NEAR(step, 2 * (kTorusStart + slowest_s(kTorusBytes)), 1e-6 * step);  // there and back
}

TEST_P(TorusLinks, ARingSendsItsBytesOverEachLinkOnce) {
  Plan plan;
  plan.dp = plan.global_batch = 4;
  const double step = torus_step_s(plan, GetParam(), {0, {kTorusBytes}, 0}, {even_times(plan, 0)});
  EXPECT_NEAR(step, kTorusStart + slowest_s(2 * 0.75 * kTorusBytes), 1e-6 * step);
}

TEST_P(TorusLinks, ACollectiveInsideAnOpTakesWhatItIsPricedAtOrTheLink) {
  Plan plan;
  plan.tp = 4;
  Prices prices{even_times(plan, 0)};
  prices.transfers.resize(1);
  Transfers& exposed = prices.transfers[0].forward[static_cast<std::size_t>(CommGroup::tensor)];
  exposed.exposed_s = prices.times.stages[0].forward.tp = kTorusBytes / (kTorusEfficiency * GetParam().nic);
  exposed.exposed_bytes = kTorusBytes;
  exposed.calls = 3;
  const double step = torus_step_s(plan, GetParam(), {0, {0}, 0}, prices);
  EXPECT_NEAR(step, slowest_s(kTorusBytes), 1e-6 * step);
}

INSTANTIATE_TEST_SUITE_P(Rates, TorusLinks,
                         testing::Values(TorusRates{5e9, 12.5e9}, TorusRates{10e9, 12.5e9},
                                         TorusRates{20e9, 12.5e9}, TorusRates{80e9, 12.5e9},
                                         TorusRates{80e9, 4e9}, TorusRates{10e9, 4e9}));

}  // namespace
}  // namespace rehearse
