// Are two clusters alike for messages, whatever they are called?
#include "cluster/likeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_json.h"
#include "cluster/share.h"

namespace rehearse {
namespace {

Cluster h100() {
  return read_cluster("dgx-h100");
}

TEST(ClusterJson, ReadsBackAsACopyOfEveryShippedCluster) {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    const Cluster copy = parse_cluster(JsonReader(messages_json(cluster), "copy"), "copy");
    const Likeness found = likeness(cluster, copy, Reach::cluster);
    EXPECT_TRUE(found.same()) << name << ": " << differing_parts(found);
    EXPECT_EQ(copy.node.gpu_link.bandwidth, cluster.node.gpu_link.bandwidth) << name;
    EXPECT_EQ(copy.node.nic.bandwidth, cluster.node.nic.bandwidth) << name;
    EXPECT_EQ(copy.gpu.peak_flops, cluster.gpu.peak_flops) << name;
    EXPECT_EQ(messages_json(copy).at("node"), messages_json(cluster).at("node")) << name;
  }
}

TEST(Likeness, DoesNotHangOnNames) {
  Cluster other = h100();
  other.name = "mine";
  other.source = "me";
  other.fabric.note = "as bought";
  other.gpu.name = "our GPU";
  other.gpu.memory_bytes /= 2;
  other.max_nodes = 4;
  EXPECT_TRUE(likeness(h100(), other, Reach::cluster).same());
}

TEST(Likeness, NamesTheFiguresThatDiffer) {
  Cluster other = h100();
  other.node.nic.bandwidth *= 2;
  EXPECT_TRUE(likeness(h100(), other, Reach::node).same());
  Likeness found = likeness(h100(), other, Reach::cluster);
  EXPECT_TRUE(found.kin);
  EXPECT_NEAR(found.distance, 0.693, 1e-3);
  EXPECT_EQ(differing_parts(found), "NICs");
  other.node.gpu_link.bandwidth /= 2;
  other.fabric.levels.front().oversubscription = 2;
  found = likeness(h100(), other, Reach::cluster);
  EXPECT_TRUE(found.kin);
  EXPECT_EQ(differing_parts(found), "GPU links, NICs and fabric");
}

TEST(Likeness, OtherKindsAreNoKin) {
  const auto kin = [](void (*change)(Cluster&), Reach reach) {
    Cluster other = h100();
    change(other);
    return likeness(h100(), other, reach).kin;
  };
  const auto roce = [](Cluster& c) { c.node.nic_kind = "roce"; };
  EXPECT_TRUE(kin(roce, Reach::node));
  EXPECT_FALSE(kin(roce, Reach::cluster));
  EXPECT_FALSE(kin([](Cluster& c) { c.nccl.degraded = true; }, Reach::cluster));
  EXPECT_FALSE(kin([](Cluster& c) { c.nccl.sm = 100; }, Reach::node));
  EXPECT_FALSE(kin([](Cluster& c) { c.node.gpu_link_kind = "pcie"; }, Reach::node));
  // A GPU of another name is another one where its figures say so too.
  EXPECT_TRUE(kin([](Cluster& c) { c.gpu.memory_bandwidth *= 2; }, Reach::node));
  EXPECT_FALSE(kin(
      [](Cluster& c) {
        c.gpu.memory_bandwidth *= 2;
        c.gpu.name = "other";
      },
      Reach::node));
}

TEST(Likeness, OfOtherLayoutsIsADifferenceAndNoOtherKind) {
  const auto differing = [](void (*change)(Cluster&), const char* name = "dgx-h100") {
    Cluster other = read_cluster(name);
    change(other);
    const Likeness found = likeness(read_cluster(name), other, Reach::cluster);
    return found.kin && found.distance > 0 ? differing_parts(found) : "no kin";
  };
  EXPECT_EQ(differing([](Cluster& c) { c.node.gpus = c.node.nics = 16; }), "GPUs per node");
  EXPECT_EQ(differing([](Cluster& c) { c.fabric.rails = false; }), "fabric");
  EXPECT_EQ(differing([](Cluster& c) { c.fabric.levels.front().nodes = 16; }), "fabric");
  EXPECT_EQ(differing([](Cluster& c) { c.node.nic_of_gpu = {1, 0, 2, 3, 4, 5, 6, 7}; }), "NICs");
  // A mesh of fewer GPUs has fewer links.
  EXPECT_EQ(differing([](Cluster& c) { c.node.gpus = 4; }, "p3.16xlarge"), "no kin");
}

TEST(Likeness, OfAShareOfEachNodeIsThatOfWholeNodes) {
  const Cluster whole = read_cluster("gb200-nvl72"), share = with_share(whole, 8);
  ASSERT_EQ(share.node.gpus, 8);
  EXPECT_TRUE(likeness(whole, share, Reach::cluster).same());
  EXPECT_FALSE(likeness(read_cluster("dgx-b200"), share, Reach::node).kin);
}

// More payload and more messages a second, the faster the NIC: also of rates that nobody measured.
TEST(NicLimits, GrowWithTheRate) {
  for (const char* kind : {"infiniband", "roce", "efa", "ethernet"}) {
    double payload = 0, messages = 0;
    for (double rate = 1e9; rate < 2e11; rate *= 1.01) {
      const NicLimits limits = read_nic_limits(kind, rate);
      const double most = limits.messages_per_s > 0 ? limits.messages_per_s : 1e18;
      EXPECT_GE(limits.efficiency * rate, payload * (1 - 1e-12)) << kind << " " << rate;
      EXPECT_GE(most, messages) << kind << " " << rate;
      payload = limits.efficiency * rate;
      messages = most;
    }
  }
  EXPECT_EQ(read_nic_limits("roce", 400e9 / 8).efficiency, 0.9625);
  EXPECT_NEAR(read_nic_limits("roce", 399e9 / 8).efficiency, 0.9625 * 400 / 399, 1e-12);
  EXPECT_EQ(read_nic_limits("roce", 150e9 / 8).messages_per_s, 215e6);
  EXPECT_EQ(read_nic_limits("infiniband", 800e9 / 8).efficiency, 1);
}

TEST(Likeness, RestatedNicsAreTheSame) {
  Cluster other = h100();
  other.node.nic_of_gpu = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_TRUE(likeness(h100(), other, Reach::cluster).same());
  other.node.nic_of_gpu = {1, 0, 2, 3, 4, 5, 6, 7};
  EXPECT_FALSE(likeness(h100(), other, Reach::cluster).same());
}

}  // namespace
}  // namespace rehearse
