// NCCL's allocations for a communicator, by its source and as observed.
#include "cost/nccl/buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/nccl/read_model.h"
#include "machines.h"

namespace rehearse::nccl {
namespace {

using ::testing::UnorderedElementsAre;

constexpr double kMiB = 1024.0 * 1024;
const std::set<Algorithm> kRing = {Algorithm::ring}, kBoth = {Algorithm::ring, Algorithm::tree};

const Constants& constants() {
  static const Model model = read_model(kDefaultModel);
  return model.constants;
}

Buffers buffers(const std::string& name, int nodes, int members_of_a_node, Release release = Release::v2_30) {
  static std::map<std::string, Cluster> clusters;
  const Cluster& cluster = clusters.try_emplace(name, read_cluster(name)).first->second;
  return {constants(), cluster, group_shape(cluster, test::ranks_on(cluster, nodes, members_of_a_node)),
          release};
}

// The picture in NCCL's src/graph/trees.cc.
TEST(DoubleTree, IsThatOfNcclsPicture) {
  EXPECT_THAT(tree_neighbours(0, 0, 14), UnorderedElementsAre(8));
  EXPECT_THAT(tree_neighbours(0, 8, 14), UnorderedElementsAre(0, 4, 12));
  EXPECT_THAT(tree_neighbours(0, 4, 14), UnorderedElementsAre(8, 2, 6));
  EXPECT_THAT(tree_neighbours(0, 12, 14), UnorderedElementsAre(8, 10, 13));
  EXPECT_THAT(tree_neighbours(0, 7, 14), UnorderedElementsAre(6));
  EXPECT_THAT(tree_neighbours(1, 3, 12), UnorderedElementsAre(1, 7, 11));  // mirrored
  EXPECT_THAT(tree_neighbours(1, 9, 13), UnorderedElementsAre(1, 5, 0));   // shifted
}

TEST(DoubleTree, JoinsAllNodesAndGivesNoneMoreThanFourNeighbours) {
  for (int nodes = 2; nodes < 200; ++nodes) {
    for (const int tree : {0, 1}) {
      int ends = 0;
      for (int node = 0; node < nodes; ++node) {
        for (const int other : tree_neighbours(tree, node, nodes)) {
          const std::vector<int> back = tree_neighbours(tree, other, nodes);
          EXPECT_NE(std::find(back.begin(), back.end(), node), back.end());
          ++ends;
        }
      }
      EXPECT_EQ(ends, 2 * (nodes - 1));
    }
    EXPECT_EQ(most_pairs(nodes, {false, true}), std::min(nodes, 4) / 2.0) << nodes;
  }
}

// Without looking at more nodes than it takes.
TEST(DoubleTree, MostPairsAreThoseOfTheBusiestNode) {
  for (int nodes = 2; nodes < 200; ++nodes) {
    std::size_t most = 0;
    for (int node = 0; node < nodes; ++node) {
      std::size_t connections = 0;
      for (const int tree : {0, 1}) {
        const std::vector<int> neighbours = tree_neighbours(tree, node, nodes);
        connections += 2 * neighbours.size();
        for (const int beside : {(node + 1) % nodes, (node + nodes - 1) % nodes})
          connections += std::ranges::count(neighbours, beside) == 0 ? 1 : 0;
      }
      most = std::max(most, connections);
    }
    EXPECT_EQ(most_pairs(nodes, {true, true}), static_cast<double>(most) / 4) << nodes;
  }
}

TEST(DoubleTree, OfTwoNodesIsTheirRing) {
  EXPECT_EQ(most_pairs(2, {true, false}), 1);
  EXPECT_EQ(most_pairs(2, {true, true}), 1);
  EXPECT_EQ(most_pairs(1, {true, true}), 0);
  EXPECT_GT(most_pairs(3, {true, true}), 1);
  EXPECT_LE(most_pairs(100, {true, true}), 3);
}

// NCCL logs 10485760 and 2097152 bytes as allocated for a connection (NVIDIA/nccl issue 1685).
TEST(NcclBuffers, OfAConnectionAreThoseOfNcclsLog) {
  EXPECT_EQ(near_pair_bytes(), 10485760 + 2097152);
  EXPECT_EQ(far_pair_bytes(), 20 * kMiB);
}

TEST(NcclBuffers, OfARingAreOneReceiversForEachChannel) {
  const Buffers eight = buffers("dgx-a100-80gb", 1, 8);
  EXPECT_EQ(eight.channels(), 24);
  EXPECT_EQ(eight.collectives(kRing), 24 * 12 * kMiB);
  EXPECT_EQ(eight.collectives(kBoth), 2 * 24 * 12 * kMiB);  // a tree is the chain both ways
  EXPECT_EQ(buffers("dgx-a100-80gb", 1, 2).collectives(kBoth),
            buffers("dgx-a100-80gb", 1, 2).collectives(kRing));
  EXPECT_EQ(buffers("dgx-a100-80gb", 1, 1).collectives(kBoth), 0);
}

TEST(NcclBuffers, OfARingDoNotGrowWithTheWorld) {
  const double two = buffers("dgx-a100-80gb", 2, 8).collectives(kRing);
  EXPECT_EQ(buffers("dgx-a100-80gb", 64, 8).collectives(kRing), two);
  EXPECT_EQ(buffers("dgx-a100-80gb", 4, 8).collectives(kBoth),
            buffers("dgx-a100-80gb", 64, 8).collectives(kBoth));
  // 16 channels, of which each GPU is the head of 2.
  EXPECT_EQ(two, (14 * 12 + 2 * 20) * kMiB);
}

TEST(NcclBuffers, AcrossNodesAloneAreOfTheNicsChannels) {
  const Buffers alone = buffers("dgx-a100-80gb", 8, 1);
  EXPECT_EQ(alone.channels(), 2);
  EXPECT_EQ(alone.collectives(kRing), 2 * 20 * kMiB);
  EXPECT_LE(alone.collectives(kBoth), 2 * 3 * 20 * kMiB);
  EXPECT_EQ(buffers("dgx-h100", 8, 1).channels(), 4);  // the search has split its one of 48 GB/s in two
}

TEST(NcclBuffers, StayOnTheHostWhereTheNicDoesNotReadGpuMemory) {
  const Buffers ethernet = buffers("a100-pcie-nvlink-pairs", 4, 1);
  EXPECT_EQ(ethernet.collectives(kBoth), 0);
  EXPECT_EQ(ethernet.exchanges({0, 3}), 0);
}

// 8 heads x 16 channels x 2 x 1 MiB.
TEST(NcclBuffers, OfNvlsAreTwoForEachHeadAndChannel) {
  const Buffers eight = buffers("dgx-h100", 1, 8);
  EXPECT_EQ(eight.collectives({Algorithm::nvls}), 256 * kMiB);
  const Buffers across = buffers("dgx-h100", 16, 8);
  EXPECT_EQ(across.collectives({Algorithm::nvls_tree}), 256 * kMiB + 16 * 2 * 20 * kMiB);
}

TEST(NcclBuffers, OfPatAreThoseOfItsBinomialTrees) {
  const Buffers eight = buffers("dgx-a100-80gb", 8, 1);
  EXPECT_EQ(eight.collectives({Algorithm::pat}), 6 * 2 * 20 * kMiB);
  EXPECT_EQ(eight.collectives({Algorithm::pat, Algorithm::ring}), 6 * 2 * 20 * kMiB);
}

// Between two of 8 H100 there are 32 channels; the first all-to-all took 4.34 - 1.06 GB (NVIDIA/nccl issue
// 1685).
TEST(NcclBuffers, OfAnAllToAllGrowWithThePeers) {
  const Buffers eight = buffers("dgx-h100", 1, 8);
  EXPECT_EQ(eight.channels_of_a_peer(), 32);
  EXPECT_EQ(eight.exchanges({7, 0}), 7 * 32 * 12 * kMiB);
  EXPECT_NEAR(eight.exchanges({7, 0}), 3.28e9, 0.2 * 3.28e9);
}

TEST(NcclBuffers, OfPipelineNeighboursAreOnePoolAcrossNodes) {
  const Buffers alone = buffers("dgx-a100-80gb", 8, 1);
  EXPECT_EQ(alone.exchanges({0, 1}), 2 * 2 * 2 * kMiB);  // 2 channels, 16 x 128 KiB each way
  EXPECT_EQ(alone.exchanges({0, 2}), alone.exchanges({0, 1}));
  EXPECT_EQ(buffers("dgx-a100-80gb", 8, 1, Release::v2_10).exchanges({0, 1}), 2 * 16 * kMiB);
  EXPECT_EQ(alone.exchanges({0, 0}), 0);
}

TEST(NcclBuffers, OfSendsInANodeAreOfTheSlowestWayOfTheGroup) {
  EXPECT_EQ(buffers("dgx-a100-80gb", 1, 2).channels_of_a_peer(), 32);
  EXPECT_EQ(buffers("dgx-a100-80gb", 4, 8).channels_of_a_peer(), 2);  // 25 GB/s are worth two
  EXPECT_EQ(buffers("dgx-a100-80gb", 4, 8, Release::v2_10).channels_of_a_peer(), 1);
  EXPECT_EQ(buffers("v100-16gb-1x100g", 1, 8).channels_of_a_peer(), 2);  // a mesh: some pairs have one link
}

}  // namespace
}  // namespace rehearse::nccl
