// One answer to "does it fit?": fits, tight, or does not fit.
#include "memory/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/footprint.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

constexpr double kCapacity = 100e9;

Footprint filled(int rank, double needed_bytes, std::optional<double> reserved_bytes = {}) {
  return {rank, needed_bytes, {}, kCapacity, reserved_bytes};
}

TEST(MemoryVerdict, IsTightBelowTheHeadroomToTheByte) {
  EXPECT_EQ(memory_verdict({filled(0, 95e9)}, {}).verdict, Verdict::fits);
  EXPECT_EQ(memory_verdict({filled(0, 95e9 + 1)}, {}).verdict, Verdict::tight);
  EXPECT_EQ(memory_verdict({filled(0, 100e9)}, {}).verdict, Verdict::tight);
  EXPECT_EQ(memory_verdict({filled(0, 100e9 + 1)}, {}).verdict, Verdict::does_not_fit);
  EXPECT_EQ(memory_verdict({filled(0, 100e9)}, {.share = 0}).verdict, Verdict::fits);
  EXPECT_EQ(memory_verdict({filled(0, 95e9)}, {0, 6e9}).verdict, Verdict::tight);
}

TEST(MemoryVerdict, IsTightWhereFragmentsNeedAnotherSetting) {
  const MemoryVerdict verdict = memory_verdict({filled(0, 80e9, 101e9)}, {});
  EXPECT_EQ(verdict.verdict, Verdict::tight);
  EXPECT_TRUE(verdict.needs_expandable_segments);
  EXPECT_TRUE(verdict.leaves_headroom);
  EXPECT_THAT(in_words(verdict), HasSubstr("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
  EXPECT_FALSE(memory_verdict({filled(0, 80e9, 100e9)}, {}).needs_expandable_segments);
  EXPECT_FALSE(memory_verdict({filled(0, 101e9, 120e9)}, {}).needs_expandable_segments) << "it does not help";
}

TEST(MemoryVerdict, IsOfAllGpus) {
  EXPECT_EQ(memory_verdict({filled(0, 10e9), filled(1, 101e9)}, {}).verdict, Verdict::does_not_fit);
  EXPECT_EQ(memory_verdict({filled(0, 90e9), filled(1, 80e9, 101e9)}, {}).verdict, Verdict::tight);
  EXPECT_EQ(memory_verdict({}, {}).verdict, Verdict::fits);
}

TEST(MemoryVerdict, NamesWhatIsNeededAndWhatIsThere) {
  EXPECT_THAT(in_words(memory_verdict({filled(0, 10e9), filled(3, 1.46e12)}, {})),
              ::testing::StartsWith("does not fit: 1.46 TB of 100 GB on pipeline rank 3, 1.36 TB"));
  EXPECT_THAT(in_words(memory_verdict({filled(0, 98e9)}, {})),
              HasSubstr("tight: 2 GB (2.0 %) free, less than the headroom of 5 GB"));
  EXPECT_THAT(in_words(memory_verdict({filled(0, 80e9)}, {})), HasSubstr("fits: 20 GB (20.0 %) free"));
}

}  // namespace
}  // namespace rehearse
