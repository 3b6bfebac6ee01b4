#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "cost/curves.h"
#include "machines.h"

namespace rehearse {
namespace {

const Gpu kGpu = test::dgx_a100().gpu;

TEST(StreamCurve, ReadsTheMeasuredRate) {
  Profile profile;
  profile.stream["norm"] = {{1e6, 0.5e12}, {4e6, 1e12}};
  EXPECT_DOUBLE_EQ(pointwise_time(profile, kGpu, Pointwise::norm, 4e6).seconds, 4e-6);
  EXPECT_DOUBLE_EQ(pointwise_time(profile, kGpu, Pointwise::norm_backward, 8e6).seconds, 8e-6);
}

TEST(StreamCurve, TakesACopyWhereAKindHasNoCurve) {
  Profile profile;
  profile.stream["copy"] = {{1e6, 1e12}};
  EXPECT_DOUBLE_EQ(pointwise_time(profile, kGpu, Pointwise::rotary, 2e6).seconds, 2e-6);
  EXPECT_DOUBLE_EQ(pointwise_time(profile, kGpu, Pointwise::adam, 2e6).seconds, 2e-6);
  EXPECT_THROW(pointwise_time(Profile{}, kGpu, Pointwise::adam, 2e6), MissingCalibration);
}

TEST(StreamCurve, OfVaryingRowsIsThatOfAllWhereNothingElseIsKnown) {
  Profile profile;
  profile.stream["activation"] = {{1e6, 0.5e12}};
  const auto seconds = [&](Pointwise kind) { return pointwise_time(profile, kGpu, kind, 1e6).seconds; };
  EXPECT_DOUBLE_EQ(seconds(Pointwise::varying_activation), 2e-6);
  EXPECT_DOUBLE_EQ(seconds(Pointwise::varying_activation_backward), 2e-6);
  profile.stream["varying_activation"] = {{1e6, 0.25e12}};
  EXPECT_DOUBLE_EQ(seconds(Pointwise::varying_activation), 4e-6);
  EXPECT_DOUBLE_EQ(seconds(Pointwise::activation), 2e-6);
}

TEST(StreamCurve, MarksWhatIsSmallerThanHalfTheSmallestSample) {
  Profile profile;
  profile.stream["copy"] = {{1e6, 1e12}};
  EXPECT_TRUE(pointwise_time(profile, kGpu, Pointwise::adam, 0.4e6).extrapolated);
  EXPECT_FALSE(pointwise_time(profile, kGpu, Pointwise::adam, 1e12).extrapolated);
}

TEST(StreamCurve, OfA100EndsAtTheTriadOfBabelStream) {
  const Profile profile = read_profile("a100-sxm-80gb");
  EXPECT_DOUBLE_EQ(pointwise_time(profile, kGpu, Pointwise::adam, 17e9).seconds, 10e-3);
}

RC_GTEST_PROP(StreamCurve, IsBoundByTheLaunchAndTheMemory, ()) {
  static const Profile profile = read_profile("a100-sxm-80gb");
  const auto kind = static_cast<Pointwise>(*rc::gen::inRange(0, static_cast<int>(Pointwise::clip_scale) + 1));
  const double bytes = *rc::gen::inRange(1, 2000000000);
  const double seconds = pointwise_time(profile, kGpu, kind, bytes).seconds;
  RC_ASSERT(seconds >= profile.launch_s);
  RC_ASSERT(seconds >= bytes / kGpu.memory_bandwidth);
}

}  // namespace
}  // namespace rehearse
