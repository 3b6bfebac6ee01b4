// Bytes that enter a node of a ring also leave it, however many members each node has.
#include "run/rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rehearse {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int kGpus = 4;  // of a node

TEST(RingEdges, JoinMembersInTheSamePlaceOfEqualNodes) {
  const FarMessages messages = ring_edges({0, 2, 4, 6, 8, 10}, kGpus);
  EXPECT_THAT(messages.pairs,
              UnorderedElementsAre(Pair(0, 4), Pair(2, 6), Pair(4, 8), Pair(6, 10), Pair(8, 0), Pair(10, 2)));
}

TEST(RingEdges, AreNoneWithinANode) {
  EXPECT_TRUE(ring_edges({0, 1, 3}, kGpus).pairs.empty());
}

TEST(RingEdges, BringEachNodeWhatLeavesIt) {
  for (const std::vector<int>& group :
       {std::vector{0, 1, 2, 4, 5}, {3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {2, 3, 4, 5, 6, 7, 8, 9}}) {
    const FarMessages messages = ring_edges(group, kGpus);
    std::map<int, int> in, out;
    for (const auto& [from, to] : messages.pairs) {
      ++out[from / kGpus];
      ++in[to / kGpus];
    }
    EXPECT_EQ(in, out);
    std::map<int, int> members;
    for (const int rank : group) ++members[rank / kGpus];
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int fewest = std::ranges::min_element(members, fewer)->second;
    ASSERT_EQ(out.size(), members.size());
    for (const auto& [node, sent] : out) EXPECT_EQ(sent, fewest) << "node " << node;
  }
}

TEST(FarPairs, AreAllInOtherNodes) {
  EXPECT_THAT(far_pairs({0, 1, 4}, kGpus).pairs,
              UnorderedElementsAre(Pair(0, 4), Pair(1, 4), Pair(4, 0), Pair(4, 1)));
}

}  // namespace
}  // namespace rehearse
