#include "cost/gemm_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "machines.h"

namespace rehearse {
namespace {

const Gpu kA100 = test::dgx_a100().gpu;

const GemmCurve& a100() {
  static const GemmCurve curve = gemm_curve(read_profile("a100-sxm-80gb"), kA100, "bf16");
  return curve;
}

Gemm any_gemm() {
  const auto side = [] { return std::int64_t{1} << *rc::gen::inRange(0, 18); };
  return {side(), side(), side(), *rc::gen::inRange<std::int64_t>(1, 100)};
}

Profile one_sample(double seconds) {
  Profile profile;
  profile.gemm["fp16"] = {{4096, 4096, 4096, seconds}};
  return profile;
}

TEST(GemmCurve, ReturnsTheMeasuredTimeAtAMeasuredShape) {
  const Estimate estimate = gemm_time(a100(), {8192, 8192, 8192, 1});
  EXPECT_NEAR(estimate.seconds, 2.0 * 8192 * 8192 * 8192 / 253.7e12, 1e-3 * estimate.seconds);
  EXPECT_FALSE(estimate.extrapolated);
}

TEST(GemmCurve, ScalesTheRooflineByTheEfficiencyOfTheOnlySample) {
  const double bound = 2.0 * 4096 * 4096 * 4096 / 312e12;
  const Estimate estimate = gemm_time(one_sample(2 * bound), kA100, {8192, 4096, 4096, 1}, "fp16");
  EXPECT_NEAR(estimate.seconds, 4 * bound, 1e-9 * bound);
}

TEST(GemmCurve, MarksShapesMoreThanTwiceBeyondTheSamples) {
  const Profile profile = one_sample(1);
  EXPECT_FALSE(gemm_time(profile, kA100, {8192, 2048, 4096, 1}, "fp16").extrapolated);
  EXPECT_TRUE(gemm_time(profile, kA100, {8193, 4096, 4096, 1}, "fp16").extrapolated);
  EXPECT_TRUE(gemm_time(profile, kA100, {4096, 4096, 2047, 1}, "fp16").extrapolated);
}

TEST(GemmCurve, TakesFp16ForBf16AndNothingForFp32) {
  const Profile profile = one_sample(1);
  EXPECT_DOUBLE_EQ(gemm_time(profile, kA100, {4096, 4096, 4096, 1}, "bf16").seconds, 1);
  EXPECT_THROW(gemm_time(profile, kA100, {4096, 4096, 4096, 1}, "fp32"), MissingCalibration);
}

TEST(GemmCurve, ReadsEachKindOfProductInItsOwnSamplesWhereThereAreSome) {
  Profile profile = one_sample(1e-3);
  profile.gemm["fp16/weight_gradient"] = {{4096, 4096, 4096, 2e-3}};
  profile.gemm["fp16/grouped"] = {{512, 4096, 4096, 4e-3, 8}};
  Gemm gemm{4096, 4096, 4096};
  const auto seconds = [&] { return gemm_time(profile, kA100, gemm, "bf16").seconds; };
  gemm.pass = GemmPass::input_gradient;  // not told apart
  EXPECT_DOUBLE_EQ(seconds(), 1e-3);
  gemm.pass = GemmPass::weight_gradient;
  EXPECT_DOUBLE_EQ(seconds(), 2e-3);
  gemm = {512, 4096, 4096, 8, true};
  EXPECT_DOUBLE_EQ(seconds(), 4e-3);
  gemm = {4096, 4096, 4096, 1, true};  // a single expert's
  EXPECT_DOUBLE_EQ(seconds(), 1e-3);
  gemm = {512, 4096, 4096, 8, true};
  gemm.batch = 16;  // of so many rows each: twice the groups take twice as long
  EXPECT_NEAR(seconds(), 8e-3, 1e-12);
}

// 64 rows against 4096 x 4096 results. Reading and writing results in fp32 takes 8 bytes each; writing them
// in the operands' type takes 2. Both operands together are 1 MB.
TEST(GemmCurve, CountsWhatAddingToAWeightGradientMoves) {
  const Profile profile = one_sample(2.0 * 4096 * 4096 * 4096 / 312e12);  // at the roofline
  Gemm gemm{4096, 4096, 64};
  const double operands = 2.0 * 2 * 4096 * 64, results = 4096.0 * 4096;
  EXPECT_NEAR(gemm_time(profile, kA100, gemm, "fp16").seconds,
              (operands + 2 * results) / kA100.memory_bandwidth, 1e-12);
  gemm.result_bytes = 8;
  EXPECT_NEAR(gemm_time(profile, kA100, gemm, "fp16").seconds,
              (operands + 8 * results) / kA100.memory_bandwidth, 1e-12);
}

TEST(GemmCurve, OfFewSamplesUsesThemAll) {
  Profile profile = one_sample(1e-3);
  profile.gemm["fp16"].push_back({16384, 16384, 4096, 16e-3});
  const double seconds = gemm_time(profile, kA100, {8192, 8192, 4096, 1}, "fp16").seconds;
  EXPECT_NEAR(seconds, 4e-3, 1e-9);  // both samples run at one efficiency
}

RC_GTEST_PROP(GemmCurve, IsTheSameForTheTransposedProduct, ()) {
  const Gemm gemm = any_gemm();
  const Gemm transposed = {gemm.n, gemm.m, gemm.k, 1};
  const Estimate a = gemm_time(a100(), {gemm.m, gemm.n, gemm.k, 1}), b = gemm_time(a100(), transposed);
  RC_ASSERT(std::abs(a.seconds - b.seconds) <= 1e-12 * a.seconds);
  RC_ASSERT(a.extrapolated == b.extrapolated);
}

RC_GTEST_PROP(GemmCurve, NeverBeatsTheRoofline, ()) {
  const Gemm gemm = any_gemm();
  const double bound = gemm_bound(a100().roof, static_cast<double>(gemm.m), static_cast<double>(gemm.n),
                                  static_cast<double>(gemm.k), static_cast<double>(gemm.batch));
  RC_ASSERT(gemm_time(a100(), gemm).seconds >= bound * (1 - 1e-12));
}

RC_GTEST_PROP(GemmCurve, NeverTakesLessThanALaunch, ()) {
  RC_ASSERT(gemm_time(a100(), any_gemm()).seconds >= a100().launch_s);
}

// A table of forward GEMMs: backward ones add their sums up in fp32, unless they were timed apart.
TEST(GemmCurve, OfFp8TakesLongerInTheBackwardPassWhereSumsAreSplit) {
  Profile profile = read_profile("h100-sxm");
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  const auto time_s = [&](GemmPass pass, const std::string& precision) {
    Gemm gemm{8192, 8192, 8192, 1};
    gemm.pass = pass;
    return gemm_time(profile, gpu, gemm, precision).seconds;
  };
  const double forward_s = time_s(GemmPass::forward, "fp8");
  for (const GemmPass pass : {GemmPass::input_gradient, GemmPass::weight_gradient}) {
    EXPECT_DOUBLE_EQ(time_s(pass, "fp8"), 1.15 * forward_s);
    EXPECT_NEAR(time_s(pass, "bf16") / time_s(GemmPass::forward, "bf16"), 1, 0.05);
  }
  profile.gemm["fp8/input_gradient"] = profile.gemm.at("fp8");
  EXPECT_DOUBLE_EQ(time_s(GemmPass::input_gradient, "fp8"), forward_s);
}

}  // namespace
}  // namespace rehearse
