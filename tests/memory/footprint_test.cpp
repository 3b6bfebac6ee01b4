// A plan fits when all that lies on each of its GPUs has room, to the byte.
#include "memory/footprint.h"

#include <gtest/gtest.h>

#include "result/cases.h"

namespace rehearse {
namespace {

using namespace test;

constexpr double kPeak = 70e9, kContext = 1e9, kWorld = 2e9, kTensor = 3e9;
constexpr double kAll = kPeak + kContext + kWorld + kTensor;

Footprint gpu_of(double capacity_bytes) {
  return {3, kPeak, {kContext, {{"world", kWorld}, {"tp", kTensor}}}, capacity_bytes};
}

TEST(Footprint, IsThePeakTheContextAndEveryCommunicator) {
  EXPECT_EQ(gpu_of(80e9).needed_bytes(), kAll);
  EXPECT_EQ(gpu_of(80e9).room_bytes(), 80e9 - kAll);
}

TEST(Footprint, FitsToTheByte) {
  EXPECT_TRUE(gpu_of(kAll).fits());
  EXPECT_EQ(gpu_of(kAll).room_bytes(), 0);
  const Footprint short_of = gpu_of(kAll - 1);
  EXPECT_LT(short_of.peak_bytes, short_of.capacity_bytes);
  EXPECT_FALSE(short_of.fits());
  EXPECT_EQ(short_of.room_bytes(), -1);
}

TEST(Footprint, InWordsSaysOfWhatTheSumIs) {
  EXPECT_EQ(in_words(gpu_of(75e9)),
            "pipeline rank 3 needs 76 GB of 75 GB: 70 GB at peak, CUDA context 1 GB, NCCL buffers 5 GB");
  EXPECT_EQ(room_in_words(gpu_of(75e9)), "1 GB (1.3 %) too much");
  EXPECT_EQ(room_in_words(gpu_of(80e9)), "4 GB (5.0 %) free");
  EXPECT_EQ(in_words({0, 1e9, {}, 4e9}), "pipeline rank 0 needs 1 GB of 4 GB");
}

TEST(Footprint, TheFullestHasTheLeastRoomNotTheMostOnIt) {
  const Footprint large{0, 90e9, {}, 192e9}, small{1, 75e9, {}, 80e9}, equal{2, 75e9, {}, 80e9};
  EXPECT_EQ(fullest({large, small, equal}).rank, 1);
  EXPECT_TRUE(fullest({}).fits());
}

// The closed form of one GPU, applied to a report.
TEST(Footprint, OfAReportWhosePeakFitsButWhoseSumDoesNotIsTooMuchByTheDifference) {
  Case made = make_case(small_plan(2, 1, 4), Durations{});
  const double peak = heaviest_rank(made.report).peak_bytes;
  made.report.facts.outside_allocator.assign(2, {kContext, {{"world", kWorld}}});
  for (const double spare : {0.0, 1.0, kContext, kContext + kWorld - 1, kContext + kWorld, 2 * kWorld}) {
    made.report.facts.gpu_memory_bytes = peak + spare;
    const Footprint gpu = fullest_gpu(made.report);
    EXPECT_EQ(gpu.fits(), spare >= kContext + kWorld) << spare;
    EXPECT_EQ(gpu.room_bytes(), spare - kContext - kWorld) << spare;
  }
}

TEST(Footprint, OfEveryRankCountsItsOwnGpu) {
  Case made = make_case(small_plan(2, 1, 4), Durations{});
  made.report.facts.memory_of_rank = {80e9, 40e9};
  made.report.facts.outside_allocator = {{kContext, {}}, {kContext, {{"world", kWorld}}}};
  const std::vector<Footprint> gpus = footprints(made.report);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].capacity_bytes, 80e9);
  EXPECT_EQ(gpus[0].needed_bytes(), made.report.memory[0].peak_bytes + kContext);
  EXPECT_EQ(gpus[1].capacity_bytes, 40e9);
  EXPECT_EQ(gpus[1].needed_bytes(), made.report.memory[1].peak_bytes + kContext + kWorld);
  EXPECT_EQ(fullest_gpu(made.report).rank, 1);
}

}  // namespace
}  // namespace rehearse
