// Known errors of the sources enter the error of the step time.
#include "run/band.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/gemm_curve.h"
#include "cost/nccl/model.h"
#include "run/iteration.h"

namespace rehearse {
namespace {

KnownErrors errors_of(const std::string& profile, const std::string& cluster) {
  return known_errors(read_profile(profile), read_cluster(cluster), "bf16", false);
}

TEST(KnownErrors, OfShippedTablesAreThoseOfTheirGaps) {
  for (const auto& [profile, cluster] :
       {std::pair("a100-sxm-80gb", "dgx-a100-80gb"), {"h100-sxm", "dgx-h100"}}) {
    const KnownErrors errors = errors_of(profile, cluster);
    EXPECT_GT(errors.products, 0.03) << profile;
    EXPECT_LT(errors.products, 0.25) << profile;
    EXPECT_GE(errors.extrapolated, errors.products);
    for (const double of_size : errors.collectives) EXPECT_GT(of_size, 0.05);
  }
}

TEST(KnownErrors, AreLargerForAProfileThatWasCarriedOver) {
  EXPECT_GT(errors_of("h200-sxm", "dgx-h200").products, errors_of("h100-sxm", "dgx-h100").products);
}

// Timed on a busy machine, quartiles 240 % apart: the step may be off by half of that.
TEST(KnownErrors, GrowWithTheSpreadOfTheTimings) {
  Profile profile = read_profile("cpu-epyc-turin");
  const Cluster cluster = read_cluster("cpu-node");
  const KnownErrors quiet = known_errors(profile, cluster, "fp32", false);
  for (auto& [precision, samples] : profile.gemm)
    for (GemmSample& sample : samples) sample.spread = 2.4;
  for (AttentionSample& sample : profile.attention) sample.spread = 2.4;
  for (auto& [curve, samples] : profile.stream)
    for (StreamSample& sample : samples) sample.spread = 2.4;
  const KnownErrors busy = known_errors(profile, cluster, "fp32", false);
  EXPECT_GT(busy.products, 1.2);
  EXPECT_LT(quiet.products, 0.5);
  EXPECT_GE(busy.extrapolated, busy.products);
}

// A profile is carried over from one GPU to another. By this rule each GEMM keeps its share of the roofline
// of the best rates. Both GPUs were measured, which tests the rule.
TEST(KnownErrors, OfCarryingA100OverToH100AreThoseThatAreCounted) {
  const auto table = [](const char* name) {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> seconds;
    const Profile profile = read_profile(name);
    for (const GemmSample& s : profile.gemm.at("fp16")) seconds[{s.m, s.n, s.k}] = s.seconds;
    return seconds;
  };
  const auto bound = [](double m, double n, double k, double flops, double bytes) {
    return std::max(2 * m * n * k / flops, 2 * (m * n + m * k + n * k) / bytes);
  };
  const auto a100 = table("a100-sxm-80gb"), h100 = table("h100-sxm");
  std::vector<double> errors;
  for (const auto& [shape, seconds] : a100) {
    const auto other = h100.find(shape);
    const auto [m, n, k] = shape;
    if (other == h100.end() || m < 1024) continue;
    const auto dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
    const double carried =
        seconds * bound(dm, dn, dk, 794.5e12, 3.35e12) / bound(dm, dn, dk, 271e12, 2.04e12);
    errors.push_back(std::abs(carried / other->second - 1));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_NEAR(errors[errors.size() * 9 / 10], 0.21, 0.01);
}

// The same test with peaks and bandwidths of data sheets, which carry a profile over to another cluster's
// GPU.
TEST(KnownErrors, OfCarryingA100OverByPeaksAreThoseThatAreCounted) {
  const Profile a100 = read_profile("a100-sxm-80gb"), h100 = read_profile("h100-sxm");
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  const GemmCurve curve = gemm_curve(a100, gpu, "fp16");
  std::vector<double> errors;
  for (const GemmSample& s : h100.gemm.at("fp16"))
    if (s.m >= 1024 && s.batch == 1)
      errors.push_back(std::abs(gemm_time(curve, {s.m, s.n, s.k, 1}).seconds / s.seconds - 1));
  std::sort(errors.begin(), errors.end());
  EXPECT_NEAR(errors[errors.size() * 9 / 10], 0.195, 0.01);
}

TEST(KnownErrors, GrowWithTheDistanceFromTheGpuThatWasTimed) {
  const Profile profile = read_profile("h100-sxm");
  Cluster cluster = read_cluster("dgx-h100");
  const auto products = [&](const char* precision) {
    return known_errors(profile, cluster, precision, false).products;
  };
  const double here = products("bf16");
  cluster.gpu.peak_flops["bf16"] *= 1.5;
  const double near = products("bf16");
  cluster.gpu.peak_flops["bf16"] *= 1.5;
  EXPECT_LT(here, near);
  EXPECT_LT(near, products("bf16"));
  EXPECT_EQ(products("fp16"), here);
}

TEST(KnownErrors, OfCollectivesAreThoseOfUnseenSystemsWhereALayoutWasNotMeasured) {
  const Profile profile = read_profile("h100-sxm");
  Cluster cluster = read_cluster("dgx-h100");
  const auto collectives = [&](bool across) {
    return known_errors(profile, cluster, "bf16", across).collectives;
  };
  const auto measured = collectives(true);
  cluster.fabric.levels.front().nodes = 16;
  EXPECT_EQ(collectives(false), measured);
  for (std::size_t size = 0; size < measured.size(); ++size)
    EXPECT_GE(collectives(true)[size], measured[size]);
  EXPECT_NE(collectives(true), measured);
  EXPECT_NE(profile.collectives->left_out_p90, profile.collectives->system_left_out_p90);
}

TEST(Uncertainty, IsThatOfKernelsAndCollectivesByTheirShares) {
  Report report;
  report.step_time_s = 10;
  report.time.compute = 6;
  report.time.bubble = 1;
  report.time.exposed_tp = 3;
  CommunicationLine line;
  line.kind = "tp";
  line.calls = 10;
  line.bytes_per_rank = 10.0 * (1 << 20);
  line.exposed_s = 3;
  report.communication = {line};
  const KnownErrors errors{0.1, 0.3, {0, 0.2, 0}, 0};
  EXPECT_NEAR(uncertainty(report, errors), std::hypot(0.7 * 0.1, 0.3 * 0.2), 1e-12);
  report.facts.extrapolated_share = 0.5;
  EXPECT_NEAR(uncertainty(report, errors), std::hypot(0.7 * 0.2, 0.3 * 0.2), 1e-12);
  const KnownErrors nothing_known{0, 0, {}, 0.12};
  EXPECT_NEAR(uncertainty(report, nothing_known), 0.12, 1e-12);
}

}  // namespace
}  // namespace rehearse
