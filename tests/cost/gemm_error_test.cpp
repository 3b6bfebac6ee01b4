// How far off is the interpolation at shapes that it was not given?
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/gemm_curve.h"
#include "machines.h"

namespace rehearse {
namespace {

struct Errors {
  double median = 0, p90 = 0, bias = 0;
};

Errors summary(std::vector<double> errors) {
  Errors summary;
  for (const double error : errors) summary.bias += error / static_cast<double>(errors.size());
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.median = errors[errors.size() / 2];
  summary.p90 = errors[errors.size() * 9 / 10];
  return summary;
}

// Every sample of at least `least_rows` rows predicted by all the others; `whole_series`: also without the
// samples of the same weight matrix (n, k).
Errors leave_out(const Profile& profile, const Gpu& gpu, std::int64_t least_rows, bool whole_series) {
  const GemmCurve all = gemm_curve(profile, gpu, "fp16");
  const std::vector<GemmSample>& samples = profile.gemm.at("fp16");
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); i += 3) {
    if (samples[i].m < least_rows) continue;
    GemmCurve others = all;
    others.points.clear();
    for (std::size_t j = 0; j < samples.size(); ++j) {
      const bool series = samples[j].n == samples[i].n && samples[j].k == samples[i].k;
      if (j != i && !(whole_series && series)) others.points.push_back(all.points[j]);
    }
    const double seconds = gemm_time(others, {samples[i].m, samples[i].n, samples[i].k, 1}).seconds;
    errors.push_back(seconds / samples[i].seconds - 1);
  }
  return summary(errors);
}

void expect_small(const std::string& name, const Gpu& gpu) {
  const Profile profile = read_profile(name);
  for (const std::int64_t least_rows : {std::int64_t{1}, std::int64_t{1024}}) {
    for (const bool whole_series : {false, true}) {
      const Errors errors = leave_out(profile, gpu, least_rows, whole_series);
      fmt::print("{} m >= {:4} leaving out {}: median {:.1f} %, p90 {:.1f} %, bias {:+.1f} %\n", name,
                 least_rows, whole_series ? "the weight matrix" : "one sample       ", 100 * errors.median,
                 100 * errors.p90, 100 * errors.bias);
      EXPECT_LT(errors.median, 0.08);
      EXPECT_LT(errors.p90, 0.20);
      EXPECT_LT(std::abs(errors.bias), 0.03);
    }
  }
}

TEST(GemmError, OfA100ShapesLeftOutIsBelow8PercentInTheMedian) {
  expect_small("a100-sxm-80gb", test::dgx_a100().gpu);
}

TEST(GemmError, OfH100ShapesLeftOutIsBelow8PercentInTheMedian) {
  expect_small("h100-sxm", test::dgx_h100().gpu);
}

}  // namespace
}  // namespace rehearse
