// Times of a profile on another GPU than the one it was taken on.
#include "cost/timed_on.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/gemm_curve.h"
#include "cost/read_profile.h"

namespace rehearse {
namespace {

const Gpu kHere{"here", 80e9, 2e12, {{"bf16", 400e12}, {"fp16", 400e12}}, 100, 9};

// One GEMM, one stream and one attention, timed on kHere.
Profile timed_here() {
  Profile profile;
  profile.name = "p";
  profile.gpu = kHere;
  profile.gemm["fp16"] = {{8192, 8192, 8192, 4e-3}};
  profile.stream["copy"] = {{1e9, 1e12}};
  for (const bool backward : {false, true}) profile.attention.push_back({128, 8192, true, backward, 200e12});
  return profile;
}

double product_s(const Profile& profile, const Gpu& gpu) {
  return gemm_time(profile, gpu, {8192, 8192, 8192, 1}, "bf16").seconds;
}

TEST(TimedOn, EveryShippedClusterHasTheFiguresOfItsProfilesGpu) {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    if (cluster.profile.empty()) continue;
    const Profile profile = read_profile(cluster.profile);
    EXPECT_TRUE(differences(profile, cluster.gpu).empty()) << name;
    EXPECT_EQ(profile.gpu.multiprocessors, cluster.gpu.multiprocessors) << name;
    for (const auto& [precision, peak] : cluster.gpu.peak_flops)
      EXPECT_EQ(timed_on(profile, cluster.gpu).peak_flops.at(precision), peak) << name << " " << precision;
    EXPECT_EQ(timed_on(profile, cluster.gpu).memory_bandwidth, cluster.gpu.memory_bandwidth) << name;
  }
}

TEST(TimedOn, AFigureThatTheProfileDoesNotStateIsTheClusters) {
  const Gpu timed = timed_on(Profile{}, kHere);
  EXPECT_EQ(timed.multiprocessors, 100);
  EXPECT_EQ(timed.memory_bandwidth, 2e12);
  EXPECT_EQ(timed.peak_flops, kHere.peak_flops);
  EXPECT_TRUE(differences(Profile{}, kHere).empty());
}

TEST(TimedOn, PeaksOfFp16AndBf16StandInForEachOther) {
  Profile profile = timed_here();
  profile.gpu.peak_flops = {{"fp16", 200e12}};
  std::vector<std::string> texts;
  for (const Difference& difference : differences(profile, kHere)) texts.push_back(to_string(difference));
  EXPECT_THAT(texts, testing::ElementsAre("bf16 peak 200 -> 400 TFLOPS", "fp16 peak 200 -> 400 TFLOPS"));
}

TEST(TimedOn, ATimeScalesByTheRatioOfTheRooflines) {
  const Profile profile = timed_here();
  Gpu twice = kHere;
  for (auto& [precision, peak] : twice.peak_flops) peak *= 2;
  EXPECT_DOUBLE_EQ(product_s(profile, kHere), 4e-3);
  EXPECT_NEAR(product_s(profile, twice), 2e-3, 0.03 * 2e-3);  // tiles are written at the memory's rate
  twice.memory_bandwidth *= 2;
  EXPECT_DOUBLE_EQ(product_s(profile, twice), 2e-3);
  EXPECT_DOUBLE_EQ(pointwise_time(profile, twice, Pointwise::adam, 4e9).seconds, 2e-3);
  const Attention attention{1, 64, 64, 128, 8192, 8192, true};
  EXPECT_DOUBLE_EQ(attention_time(profile, twice, attention).seconds,
                   attention_time(profile, kHere, attention).seconds / 2);
}

TEST(TimedOn, LaunchesAreNoShorterOnAFasterGpu) {
  Profile profile = timed_here();
  profile.launch_s = 1e-5;
  profile.stream["copy"] = {{2e6, 0.1e12}};  // 20 us: 1 us at the memory's bandwidth, the rest is its start
  Gpu fast = kHere;
  fast.memory_bandwidth *= 1000;
  EXPECT_NEAR(pointwise_time(profile, fast, Pointwise::adam, 2e6).seconds, 20e-6 * 10 / 11, 1e-8);
}

TEST(TimedOn, TilesAndWavesAreThoseOfTheGpuThatWasTimed) {
  const Profile profile = timed_here();
  Gpu other = kHere;
  other.multiprocessors = 132;
  EXPECT_EQ(product_s(profile, other), product_s(profile, kHere));
  const Attention few{1, 4, 4, 128, 8192, 8192, true};
  EXPECT_EQ(attention_time(profile, other, few).seconds, attention_time(profile, kHere, few).seconds);
  Profile silent = profile;
  silent.gpu.multiprocessors = 0;
  EXPECT_NE(gemm_time(silent, other, {8192, 4096, 8192, 1}, "bf16").seconds,
            gemm_time(profile, other, {8192, 4096, 8192, 1}, "bf16").seconds);
}

TEST(TimedOn, AProfileStatesItsGpu) {
  const Gpu h100 = read_profile("h100-sxm").gpu;
  EXPECT_EQ(h100.name, "H100-SXM5-80GB");
  EXPECT_EQ(h100.multiprocessors, 132);
  EXPECT_EQ(h100.memory_bandwidth, 3.35e12);
  EXPECT_EQ(profile_gpu_json(h100).at("multiprocessors"), 132);
  EXPECT_FALSE(profile_gpu_json(read_profile("cpu-generic").gpu).contains("multiprocessors"));
}

Gpu faster(Gpu gpu, double peak, double bandwidth) {
  for (auto& [precision, flops] : gpu.peak_flops) flops *= peak;
  gpu.memory_bandwidth *= bandwidth;
  return gpu;
}

// Holds for every kernel of the shipped profiles.
RC_GTEST_PROP(TimedOn, AFasterGpuMakesNoKernelSlower, ()) {
  static const Profile profile = read_profile("h100-sxm");
  static const Gpu h100 = read_cluster("dgx-h100").gpu;
  const auto side = [] { return *rc::gen::inRange<std::int64_t>(1, 1 << 15); };
  const auto times = [] { return *rc::gen::element(0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 8.0); };
  const double peak = times(), bandwidth = times();
  const Gpu slow = faster(h100, peak, bandwidth);
  const Gpu fast = faster(slow, *rc::gen::element(1.0, 1.05, 2.0), *rc::gen::element(1.0, 1.05, 2.0));
  const Gemm gemm{side(), side(), side(), 1};
  const std::string precision = *rc::gen::element("bf16", "fp16", "fp8");
  RC_ASSERT(gemm_time(profile, fast, gemm, precision).seconds <=
            gemm_time(profile, slow, gemm, precision).seconds * (1 + 1e-12));
  const double bytes = static_cast<double>(side()) * static_cast<double>(side());
  RC_ASSERT(pointwise_time(profile, fast, Pointwise::norm, bytes).seconds <=
            pointwise_time(profile, slow, Pointwise::norm, bytes).seconds * (1 + 1e-12));
  const Attention attention{1, *rc::gen::inRange<std::int64_t>(1, 64), 1, 128, side(), side(), true};
  RC_ASSERT(attention_time(profile, fast, attention, precision).seconds <=
            attention_time(profile, slow, attention, precision).seconds * (1 + 1e-12));
}

}  // namespace
}  // namespace rehearse
