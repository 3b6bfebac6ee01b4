#include "cost/gemm_curve.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace rehearse {

namespace {

// Shepard's interpolation (1968): so many nearest samples, weighted by 1 / distance^2.
constexpr std::size_t kNeighbours = 8;
// A side up to twice beyond the samples still counts as measured: tiles and waves repeat within an octave.
const double kMargin = std::log(2.0);

struct Near {
  double distance2 = 0;
  double log_efficiency = 0;
};

// C^T = B^T A^T: a GEMM and its transpose run the same tiles, so m and n are sorted.
LogShape fold(double m, double n, double k) {
  return {std::log(std::min(m, n)), std::log(std::max(m, n)), std::log(k)};
}

// The samples nearest to `at`, nearest first.
std::vector<Near> nearest_points(const GemmCurve& curve, const LogShape& at) {
  std::vector<Near> near;
  near.reserve(kNeighbours + 1);
  double limit = INFINITY;
  for (const GemmCurve::Point& point : curve.points) {
    double distance2 = 0;
    for (std::size_t d = 0; d < at.size() && distance2 < limit; ++d) {
      distance2 += (point.at[d] - at[d]) * (point.at[d] - at[d]);
    }
    if (distance2 >= limit) continue;
    const auto place = std::upper_bound(near.begin(), near.end(), distance2,
                                        [](double d2, const Near& other) { return d2 < other.distance2; });
    near.insert(place, {distance2, point.log_efficiency});
    if (near.size() > kNeighbours) near.pop_back();
    if (near.size() == kNeighbours) limit = near.back().distance2;
  }
  return near;
}

double log_efficiency(const GemmCurve& curve, const LogShape& at) {
  const std::vector<Near> near = nearest_points(curve, at);
  double weights = 0, sum = 0;
  if (near.front().distance2 == 0) {  // measured; several times when both of its layouts were
    for (const Near& point : near) {
      if (point.distance2 > 0) break;
      weights += 1;
      sum += point.log_efficiency;
    }
    return sum / weights;
  }
  for (const Near& point : near) {
    weights += 1 / point.distance2;
    sum += point.log_efficiency / point.distance2;
  }
  return sum / weights;
}

bool outside(const GemmCurve& curve, const LogShape& at) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < curve.low[d] - kMargin || at[d] > curve.high[d] + kMargin) return true;
  }
  return false;
}

const std::vector<GemmSample>& samples_of(const Profile& profile, const std::string& precision) {
  auto found = profile.gemm.find(precision);
  if (found == profile.gemm.end() && precision == "bf16") found = profile.gemm.find("fp16");
  if (found == profile.gemm.end() && precision == "fp16") found = profile.gemm.find("bf16");
  if (found == profile.gemm.end()) {
    std::vector<std::string> known;
    for (const auto& entry : profile.gemm) known.push_back(entry.first);
    throw MissingCalibration(
        fmt::format("profile {} has no {} GEMMs; it has {}", profile.name, precision, join(known)));
  }
  return found->second;
}

Roofline roofline_of(const Gpu& gpu, const std::string& precision) {
  const auto peak = gpu.peak_flops.find(precision);
  if (peak == gpu.peak_flops.end()) {
    throw MissingCalibration(fmt::format("{} states no peak for {}", gpu.name, precision));
  }
  const double operand_bytes = precision == "fp32" ? 4 : precision == "fp8" ? 1 : 2;
  return {peak->second, gpu.memory_bandwidth, operand_bytes, std::max(operand_bytes, 2.0)};
}

}  // namespace

GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision) {
  GemmCurve curve{roofline_of(gpu, precision), profile.launch_s, {}, {}, {}};
  curve.low.fill(INFINITY);
  curve.high.fill(-INFINITY);
  for (const GemmSample& sample : samples_of(profile, precision)) {
    const auto m = static_cast<double>(sample.m), n = static_cast<double>(sample.n),
               k = static_cast<double>(sample.k), batch = static_cast<double>(sample.batch);
    const LogShape at = fold(m * batch, n, k);
    curve.points.push_back({at, std::log(gemm_bound(curve.roof, m, n, k, batch) / sample.seconds)});
    for (std::size_t d = 0; d < at.size(); ++d) {
      curve.low[d] = std::min(curve.low[d], at[d]);
      curve.high[d] = std::max(curve.high[d], at[d]);
    }
  }
  return curve;
}

Estimate gemm_time(const GemmCurve& curve, const Gemm& gemm) {
  const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
             k = static_cast<double>(gemm.k), batch = static_cast<double>(gemm.batch);
  // A batch fills the multiprocessors as that many times the rows would.
  const LogShape at = fold(m * batch, n, k);
  const double bound = gemm_bound(curve.roof, m, n, k, batch);
  const double seconds = bound / std::min(1.0, std::exp(log_efficiency(curve, at)));
  return {std::max(curve.launch_s, seconds), outside(curve, at)};
}

Estimate gemm_time(const Profile& profile, const Gpu& gpu, const Gemm& gemm, const std::string& precision) {
  return gemm_time(gemm_curve(profile, gpu, precision), gemm);
}

}  // namespace rehearse
