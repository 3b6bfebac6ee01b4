#include "cost/collectives.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "machines.h"

namespace rehearse {
namespace {

using test::dgx_a100;
using test::ranks_on;
using test::round_numbers;

CommunicationTime time_on(const Profile& profile, CollectiveOp op, double bytes, int nodes, int members) {
  const Cluster cluster = dgx_a100();
  return collective_time(profile, cluster, op, bytes,
                         group_shape(cluster, ranks_on(cluster, nodes, members)));
}

TEST(GroupShape, CountsMembersNodesAndMembersThatShareANic) {
  Cluster cluster = dgx_a100();
  cluster.node.nics = 4;
  const GroupShape shape = group_shape(cluster, ranks_on(cluster, 2, 8));
  EXPECT_EQ(shape.members, 16);
  EXPECT_EQ(shape.nodes, 2);
  EXPECT_EQ(shape.per_nic, 2);
  EXPECT_EQ(group_shape(cluster, ranks_on(cluster, 4, 1)).per_nic, 1);
}

TEST(GroupShape, CountsTheNicsOfTheNodeThatHasFewest) {
  const Cluster cluster = dgx_a100();
  std::vector<int> ranks = ranks_on(cluster, 2, 8);
  EXPECT_EQ(group_shape(cluster, ranks).ring_nics(), 8);
  ranks.resize(10);
  const GroupShape uneven = group_shape(cluster, ranks);
  EXPECT_EQ(uneven.ring_nics(), 2);
  EXPECT_EQ((GroupShape{10, 2, 1}.ring_nics()), 5);
  // All bytes of the ring leave each node, through those two.
  EXPECT_DOUBLE_EQ(far_bytes(CollectiveOp::all_gather, 1e9, uneven), 0.9 * 1e9 / 2);
}

TEST(GroupShape, GivesEachMemberANicOfItsOwnWhereThereAreMoreNicsThanGpus) {
  Cluster cluster = dgx_a100();
  cluster.node.nics = 32;
  EXPECT_EQ(group_shape(cluster, ranks_on(cluster, 2, 8)).per_nic, 1);
}

TEST(Ring, IsAsFastAsTheNicsOfTheSmallestNode) {
  const Cluster cluster = dgx_a100();
  std::vector<int> ranks = ranks_on(cluster, 2, 8);
  ranks.resize(10);
  const Profile profile = round_numbers();
  const auto seconds = [&](const GroupShape& shape) {
    return collective_time(profile, cluster, CollectiveOp::all_gather, 1e9, shape).transfer_s;
  };
  EXPECT_NEAR(seconds(group_shape(cluster, ranks)), 2.5 * seconds({10, 2, 1}), 1e-9);
}

TEST(Ring, AllReduceInANodeFollowsHockney) {
  const CommunicationTime time = time_on(round_numbers(), CollectiveOp::all_reduce, 1e9, 1, 8);
  EXPECT_DOUBLE_EQ(time.latency_s, 10e-6 + 14 * 1e-6);
  EXPECT_DOUBLE_EQ(time.transfer_s, 2 * 7.0 / 8 * 1e9 / (0.5 * 300e9));
  EXPECT_FALSE(time.extrapolated);
}

TEST(Ring, AllGatherAndReduceScatterMoveHalfOfAnAllReduce) {
  const double all_reduce = time_on(round_numbers(), CollectiveOp::all_reduce, 1e9, 1, 8).transfer_s;
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    const CommunicationTime half = time_on(round_numbers(), op, 1e9, 1, 8);
    EXPECT_DOUBLE_EQ(2 * half.transfer_s, all_reduce);
    EXPECT_DOUBLE_EQ(half.latency_s, 10e-6 + 7 * 1e-6);
  }
}

TEST(Ring, AcrossNodesIsBoundByTheSumOfANodesNicsOrByTheGpuLink) {
  const double bytes = 2 * 15.0 / 16 * 1e9;
  // 8 NICs carry 8 x 25 x 0.9 = 180 GB/s, the GPU's link 150: the link binds.
  EXPECT_DOUBLE_EQ(time_on(round_numbers(), CollectiveOp::all_reduce, 1e9, 2, 8).transfer_s, bytes / 150e9);
  // 4 members have 4 NICs: 90 GB/s.
  const double eight = 2 * 7.0 / 8 * 1e9;
  EXPECT_DOUBLE_EQ(time_on(round_numbers(), CollectiveOp::all_reduce, 1e9, 2, 4).transfer_s, eight / 90e9);
}

TEST(Ring, OfOneGpuANodeStepsOverTheNetworkOnly) {
  const CommunicationTime time = time_on(round_numbers(), CollectiveOp::all_reduce, 1e9, 4, 1);
  EXPECT_DOUBLE_EQ(time.latency_s, 20e-6 + 6 * 4e-6);
  EXPECT_DOUBLE_EQ(time.transfer_s, 2 * 3.0 / 4 * 1e9 / (0.9 * 25e9));
}

TEST(Ring, OfGpusThatShareANicHasHalfItsRate) {
  Cluster cluster = dgx_a100();
  cluster.node.nics = 4;
  const GroupShape shape = group_shape(cluster, ranks_on(cluster, 2, 8));
  const double seconds =
      collective_time(round_numbers(), cluster, CollectiveOp::all_gather, 1e9, shape).transfer_s;
  EXPECT_DOUBLE_EQ(seconds, 15.0 / 16 * 1e9 / (4 * 0.9 * 25e9));
}

TEST(Ring, BroadcastMovesAllBytesOnce) {
  const CommunicationTime inside = time_on(round_numbers(), CollectiveOp::broadcast, 1e9, 1, 8);
  EXPECT_DOUBLE_EQ(inside.latency_s, 10e-6 + 7 * 1e-6);
  EXPECT_DOUBLE_EQ(inside.transfer_s, 1e9 / (0.5 * 300e9));
  const CommunicationTime across = time_on(round_numbers(), CollectiveOp::broadcast, 1e9, 4, 1);
  EXPECT_DOUBLE_EQ(across.latency_s, 20e-6 + 3 * 4e-6);
  EXPECT_DOUBLE_EQ(across.transfer_s, 1e9 / (0.9 * 25e9));
}

// Our own rings count their hops; nccl-tests let broadcasts of one rank follow each other.
TEST(LoneBroadcast, GoesRoundOnceMoreWhereNcclHidesIt) {
  const Cluster cluster = dgx_a100();
  const GroupShape eight = group_shape(cluster, ranks_on(cluster, 1, 8));
  const CommunicationTime ring = lone_broadcast_time(round_numbers(), cluster, 1e9, eight);
  EXPECT_EQ(ring.latency_s, 10e-6 + 7 * 1e-6);
  Profile profile = round_numbers();
  profile.collectives = read_profile("a100-sxm-80gb").collectives;
  const CommunicationTime followed = collective_time(profile, cluster, CollectiveOp::broadcast, 1e9, eight);
  const CommunicationTime lone = lone_broadcast_time(profile, cluster, 1e9, eight);
  EXPECT_EQ(lone.transfer_s, followed.transfer_s);
  EXPECT_DOUBLE_EQ(lone.latency_s - followed.latency_s, 8 * 4e-6);
}

TEST(LoneBroadcast, OfOneMemberTakesNoTime) {
  Profile profile = round_numbers();
  profile.collectives = read_profile("a100-sxm-80gb").collectives;
  EXPECT_EQ(lone_broadcast_time(profile, dgx_a100(), 1e9, {1, 1, 1}).total(), 0);
}

TEST(CommunicationTime, AddsUp) {
  CommunicationTime sum{1, 2, false};
  sum += {10, 20, true};
  sum += {100, 200, false};
  EXPECT_EQ(sum.latency_s, 111);
  EXPECT_EQ(sum.transfer_s, 222);
  EXPECT_TRUE(sum.extrapolated);
}

TEST(AllToAll, SendsRemoteSharesThroughTheNicBesideLocalOnes) {
  const CommunicationTime time = time_on(round_numbers(), CollectiveOp::all_to_all, 16e9, 2, 8);
  EXPECT_DOUBLE_EQ(time.transfer_s, 8e9 / (0.96 * 25e9));
  EXPECT_DOUBLE_EQ(time_on(round_numbers(), CollectiveOp::all_to_all, 8e9, 1, 8).transfer_s,
                   7e9 / (0.8 * 300e9));
}

TEST(Send, TakesTheNicOnlyAcrossNodes) {
  const Cluster cluster = dgx_a100();
  EXPECT_DOUBLE_EQ(send_time(round_numbers(), cluster, 1e9, false).total(), 5e-6 + 1e9 / 240e9);
  EXPECT_DOUBLE_EQ(send_time(round_numbers(), cluster, 1e9, true).total(), 15e-6 + 1e9 / 24e9);
}

TEST(Collective, OfOneMemberTakesNoTime) {
  EXPECT_EQ(time_on(Profile{}, CollectiveOp::all_reduce, 1e9, 1, 1).total(), 0);
}

TEST(Collective, OverAnUnknownNicTakesInfinibandAndSaysSo) {
  Cluster cluster = dgx_a100();
  cluster.node.nic_kind = "slingshot";
  const GroupShape shape = group_shape(cluster, ranks_on(cluster, 2, 1));
  const CommunicationTime time =
      collective_time(round_numbers(), cluster, CollectiveOp::all_gather, 1e9, shape);
  EXPECT_TRUE(time.extrapolated);
  EXPECT_DOUBLE_EQ(time.transfer_s, 0.5e9 / (0.9 * 25e9));
}

TEST(Collective, SaysWhatIsMissing) {
  const Cluster cluster = dgx_a100();
  const GroupShape two = group_shape(cluster, {0, 1});
  EXPECT_THROW(collective_time(Profile{}, cluster, CollectiveOp::all_gather, 1, two), MissingCalibration);
  Cluster alone = cluster;
  alone.node.nics = 0;
  EXPECT_THROW(send_time(round_numbers(), alone, 1, true), InputError);
}

TEST(Collective, OfAModelledLinkAddsThePortsLatency) {
  const Cluster cluster = dgx_a100();
  Profile profile;
  profile.links = {{"nvswitch", "send", 0, 0, 1, How::modelled}};
  EXPECT_DOUBLE_EQ(send_time(profile, cluster, 0, false).latency_s, cluster.node.gpu_link.latency);
}

RC_GTEST_PROP(Collective, NeverBeatsTheWire, ()) {
  static const Profile profile = read_profile("h100-sxm");
  static const Cluster cluster = read_cluster("dgx-h100");
  const int nodes = *rc::gen::inRange(1, 65), members = *rc::gen::inRange(1, 9);
  const double bytes = *rc::gen::inRange(1, 2000000000);
  const GroupShape shape = group_shape(cluster, ranks_on(cluster, nodes, members));
  const auto seconds = [&](CollectiveOp op, double size) {
    return collective_time(profile, cluster, op, size, shape).total();
  };
  // Data that a rank lacks must reach it: over its link, or over the NICs of its node.
  const double nics = members * cluster.node.nic.bandwidth;
  const double missing = nodes > 1 ? bytes * (nodes - 1) / nodes / nics
                                   : bytes * (members - 1) / members / cluster.node.gpu_link.bandwidth;
  RC_ASSERT(seconds(CollectiveOp::all_gather, bytes) >= missing * (1 - 1e-12));
  RC_ASSERT(seconds(CollectiveOp::all_reduce, bytes) >= missing * (1 - 1e-12));
  // Protocols change with the size. Below some megabytes, times in the tables fall where they change; above,
  // over two octaves, times grow.
  const double large = std::max(bytes, 4e6);
  RC_ASSERT(seconds(CollectiveOp::all_reduce, large) <= 1.01 * seconds(CollectiveOp::all_reduce, 4 * large));
}

}  // namespace
}  // namespace rehearse
