// PyTorch's caching allocator, by its own rules.
#include "memory/caching_allocator.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

constexpr std::int64_t kMib = 1 << 20;

TEST(CachingAllocator, SegmentsAreOfTwoOrTwentyMebibytesOrOfTheBlocksOwnSize) {
  CachingAllocator small, middle, large;
  small.allocate(1);
  EXPECT_EQ(small.most_reserved_bytes(), 2 * kMib);
  EXPECT_EQ(small.most_requested_bytes(), 1);
  middle.allocate(kMib + 1);
  EXPECT_EQ(middle.most_reserved_bytes(), 20 * kMib);
  large.allocate(11 * kMib);
  EXPECT_EQ(large.most_reserved_bytes(), 12 * kMib);
}

TEST(CachingAllocator, SmallBlocksShareASegmentOfTheirOwn) {
  CachingAllocator allocator;
  for (int i = 0; i < 4096; ++i) allocator.allocate(512);
  EXPECT_EQ(allocator.most_reserved_bytes(), 2 * kMib);
  allocator.allocate(512);
  EXPECT_EQ(allocator.most_reserved_bytes(), 4 * kMib);
}

TEST(CachingAllocator, AFreeBlockIsTakenAgain) {
  CachingAllocator allocator;
  for (int i = 0; i < 10; ++i) allocator.free(allocator.allocate(100 * kMib));
  EXPECT_EQ(allocator.most_reserved_bytes(), 100 * kMib);
  EXPECT_EQ(allocator.most_requested_bytes(), 100 * kMib);
}

// A remaining tensor occupies part of a larger block: the next large tensor does not fit there.
TEST(CachingAllocator, ASplitBlockIsLostForThoseOfItsOldSize) {
  CachingAllocator allocator;
  allocator.free(allocator.allocate(384 * kMib));
  const auto stays = allocator.allocate(216 * kMib);
  allocator.free(allocator.allocate(384 * kMib));
  EXPECT_EQ(allocator.most_reserved_bytes(), 2 * 384 * kMib);
  allocator.free(stays);  // and is whole again
  allocator.allocate(384 * kMib);
  allocator.allocate(384 * kMib);
  EXPECT_EQ(allocator.most_reserved_bytes(), 2 * 384 * kMib);
}

TEST(CachingAllocator, TheSmallestFreeBlockThatIsLargeEnoughIsTaken) {
  CachingAllocator allocator;
  const auto wide = allocator.allocate(100 * kMib), narrow = allocator.allocate(50 * kMib);
  allocator.free(wide);
  allocator.free(narrow);
  allocator.allocate(40 * kMib);
  allocator.allocate(100 * kMib);
  EXPECT_EQ(allocator.most_reserved_bytes(), 150 * kMib);
}

TEST(CachingAllocator, ABlockThatOtherStreamsUseIsTakenWhenTheyHaveCome) {
  CachingAllocator allocator;
  allocator.free_at(allocator.allocate(100 * kMib), 7);
  allocator.reach(6);
  const auto other = allocator.allocate(100 * kMib);
  EXPECT_EQ(allocator.most_reserved_bytes(), 200 * kMib);
  allocator.free_at(other, 9);
  allocator.reach(7);
  allocator.allocate(100 * kMib);
  EXPECT_EQ(allocator.most_reserved_bytes(), 200 * kMib);
}

TEST(CachingAllocator, WhereThereIsNoRoomWholeFreeSegmentsAreGivenBack) {
  CachingAllocator allocator(250 * kMib);
  allocator.free_at(allocator.allocate(100 * kMib), 1000);
  allocator.free(allocator.allocate(100 * kMib));
  allocator.allocate(200 * kMib);
  EXPECT_EQ(allocator.most_reserved_bytes(), 200 * kMib);
  allocator.allocate(60 * kMib);  // more than there is
  EXPECT_EQ(allocator.most_reserved_bytes(), 260 * kMib);
}

}  // namespace
}  // namespace rehearse
