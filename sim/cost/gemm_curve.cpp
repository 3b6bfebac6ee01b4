#include "cost/gemm_curve.h"

#include <fmt/core.h>

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

// Of the precision that the profile has: fp16 and bf16 stand in for each other.
std::string known_precision(const Profile& profile, const std::string& precision) {
  for (const std::string& name : {precision, std::string(precision == "bf16" ? "fp16" : "bf16")}) {
    if (profile.gemm.count(name) > 0 && (name == precision || precision == "fp16" || precision == "bf16"))
      return name;
  }
  std::vector<std::string> known;
  for (const auto& entry : profile.gemm) known.push_back(entry.first);
  throw MissingCalibration(
      fmt::format("profile {} has no {} GEMMs; it has {}", profile.name, precision, join(known)));
}

Roofline roofline_of(const Gpu& gpu, const std::string& precision) {
  const auto peak = gpu.peak_flops.find(precision);
  if (peak == gpu.peak_flops.end()) {
    throw MissingCalibration(fmt::format("{} states no peak for {}", gpu.name, precision));
  }
  const double operand_bytes = precision == "fp32" ? 4 : precision == "fp8" ? 1 : 2;
  return {peak->second, gpu.memory_bandwidth, operand_bytes, std::max(operand_bytes, 2.0)};
}

// A batch fills the multiprocessors as that many times the rows would.
LogShape place(const GemmCurve& curve, double m, double n, double k, double batch) {
  return curve.grouped ? fold(m, n, k) : fold(m * batch, n, k);
}

// A weight gradient's bound depends on its result: of samples it is added to in fp32.
double bound(Roofline roof, double m, double n, double k, double batch, double result_bytes) {
  if (result_bytes > 0) roof.result_bytes = result_bytes;
  return gemm_bound(roof, m, n, k, batch);
}

}  // namespace

std::string gemm_key(const std::string& precision, GemmPass pass, bool grouped) {
  const std::string kind = precision + (grouped ? "/grouped" : "");
  if (pass == GemmPass::forward) return kind;
  return kind + (pass == GemmPass::input_gradient ? "/input_gradient" : "/weight_gradient");
}

std::vector<std::string> gemm_keys(const std::string& precision) {
  std::vector<std::string> keys;
  for (const bool grouped : {false, true}) {
    for (const GemmPass pass : {GemmPass::forward, GemmPass::input_gradient, GemmPass::weight_gradient})
      keys.push_back(gemm_key(precision, pass, grouped));
  }
  return keys;
}

GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision, GemmPass pass,
                     bool grouped) {
  GemmCurve curve{roofline_of(gpu, precision), profile.launch_s, {}, {}, {}};
  curve.low.fill(INFINITY);
  curve.high.fill(-INFINITY);
  const std::string known = known_precision(profile, precision);
  const auto own = profile.gemm.find(gemm_key(known, pass, grouped));
  const bool told_apart = own != profile.gemm.end();
  curve.grouped = grouped && told_apart;
  const double result_bytes = told_apart && pass == GemmPass::weight_gradient ? kAccumulatedBytes : 0;
  for (const GemmSample& sample : told_apart ? own->second : profile.gemm.at(known)) {
    const auto m = static_cast<double>(sample.m), n = static_cast<double>(sample.n),
               k = static_cast<double>(sample.k), batch = static_cast<double>(sample.batch);
    const LogShape at = place(curve, m, n, k, batch);
    curve.points.push_back({at, std::log(bound(curve.roof, m, n, k, batch, result_bytes) / sample.seconds)});
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
  const LogShape at = place(curve, m, n, k, batch);
  const double seconds = bound(curve.roof, m, n, k, batch, gemm.result_bytes) /
                         std::min(1.0, std::exp(log_efficiency(curve, at)));
  return {std::max(curve.launch_s, seconds), outside(curve, at)};
}

Estimate gemm_time(const Profile& profile, const Gpu& gpu, const Gemm& gemm, const std::string& precision) {
  return gemm_time(gemm_curve(profile, gpu, precision, gemm.pass, gemm.of_experts), gemm);
}

}  // namespace rehearse
