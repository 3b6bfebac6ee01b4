#include "cost/gemm_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cost/gemm_tiles.h"
#include "cost/timed_on.h"

namespace rehearse {

namespace {

// Shepard's interpolation (1968): the nearest samples, weighted by 1 / distance^2.
constexpr std::size_t kNeighbours = 8;
// A side up to twice beyond the samples still counts as measured: tiles and waves repeat within an octave.
const double kMargin = std::log(2.0);
constexpr std::size_t kFirstSide = 1;  // of a LogShape
// Shapes that fill the GPU alike run alike, so this distance counts more than that of a side. Weights of 1 to
// 4 predict held-out samples of A100 and H100 equally well, within one percentage point.
constexpr double kWeightOfWaves = 2;

struct Near {
  double distance2 = 0;
  double log_excess = 0;
};

// The samples nearest to a shape, nearest first.
class Nearest {
 public:
  double limit() const { return count_ < kNeighbours ? INFINITY : near_[kNeighbours - 1].distance2; }
  void add(const Near& point) {
    std::size_t place = std::min(count_, kNeighbours - 1);
    for (; place > 0 && near_[place - 1].distance2 > point.distance2; --place)
      near_[place] = near_[place - 1];
    near_[place] = point;
    count_ = std::min(count_ + 1, kNeighbours);
  }
  const Near* begin() const { return near_.data(); }
  const Near* end() const { return near_.data() + count_; }

 private:
  std::array<Near, kNeighbours> near_;
  std::size_t count_ = 0;
};

Nearest nearest_points(const GemmCurve& curve, const LogShape& at) {
  Nearest near;
  for (const GemmCurve::Point& point : curve.points) {
    double distance2 = 0;
    for (std::size_t d = 0; d < at.size() && distance2 < near.limit(); ++d)
      distance2 += (point.at[d] - at[d]) * (point.at[d] - at[d]);
    if (distance2 < near.limit()) near.add({distance2, point.log_excess});
  }
  return near;
}

double log_excess(const GemmCurve& curve, const LogShape& at) {
  const Nearest near = nearest_points(curve, at);
  const bool measured = near.begin()->distance2 == 0;  // several times when both of its layouts were
  double weights = 0, sum = 0;
  for (const Near& point : near) {
    if (measured && point.distance2 > 0) break;
    const double weight = measured ? 1 : 1 / point.distance2;
    weights += weight;
    sum += weight * point.log_excess;
  }
  return sum / weights;
}

bool outside(const GemmCurve& curve, const LogShape& at) {
  for (std::size_t d = kFirstSide; d < at.size(); ++d) {
    if (at[d] < curve.low[d] - kMargin || at[d] > curve.high[d] + kMargin) return true;
  }
  return false;
}

Roofline roofline_of(const Gpu& gpu, const std::string& precision) {
  const auto peak = gpu.peak_flops.find(precision);
  if (peak == gpu.peak_flops.end()) {
    throw MissingCalibration(fmt::format("{} states no peak for {}", gpu.name, precision));
  }
  const double operand_bytes = bytes_of_operand(precision);
  return {peak->second, gpu.memory_bandwidth, operand_bytes, std::max(operand_bytes, 2.0)};
}

// C^T = B^T A^T: a GEMM and its transpose run the same tiles, so m and n are sorted. A batch fills the
// multiprocessors like a single GEMM with that many times the rows.
LogShape place(const GemmCurve& curve, double m, double n, double k, double batch) {
  const double rows = curve.grouped ? m : m * batch;
  const double waves =
      curve.multiprocessors > 0 ? tiles_of(m, n, batch) / curve.multiprocessors : 1;  // not told apart
  return {kWeightOfWaves * std::log(waves), std::log(std::min(rows, n)), std::log(std::max(rows, n)),
          std::log(k)};
}

// A weight gradient's bound depends on the precision of its result, which is added to in fp32. Samples
// accumulate in fp32, and usually the GEMM of the plan does too.
Roofline with_result(const GemmCurve& curve, Roofline roof, double result_bytes) {
  if (!(result_bytes > 0)) return roof;
  roof.hidden_bytes = curve.hidden_sums * std::max(0.0, result_bytes - roof.result_bytes);
  roof.result_bytes = result_bytes - roof.hidden_bytes;
  return roof;
}

// The reference for measured times: a kernel starts, then its tiles run at peak rates.
double at_peak(const GemmCurve& curve, const Roofline& roof, double m, double n, double k, double batch) {
  if (curve.multiprocessors == 0) return gemm_bound(roof, m, n, k, batch);
  const double most_parts = curve.splits_k ? kMaxParts : 1;
  return curve.launch_s + tiled_bound(roof, curve.multiprocessors, m, n, k, batch, most_parts);
}

}  // namespace

GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision,
                     const GemmKind& kind) {
  GemmCurve curve;
  const Gpu timed = timed_on(profile, gpu);
  curve.roof = roofline_of(gpu, precision);
  curve.timed = roofline_of(timed, precision);
  curve.launch_s = profile.launch_s;
  curve.multiprocessors = static_cast<double>(timed.multiprocessors);
  curve.low.fill(INFINITY);
  curve.high.fill(-INFINITY);
  const KnownGemms known = known_gemms(profile, precision, kind);
  curve.grouped = known.kind.grouped;
  curve.splits_k = known.kind.align == 8;
  if (precision == "fp8" && kind.pass != known.kind.pass) curve.times_points = profile.fp8_split_sums;
  const bool added = known.kind.pass == GemmPass::weight_gradient;
  if (added && !curve.grouped) curve.hidden_sums = profile.hidden_sums;
  const Roofline roof = with_result(curve, curve.timed, added ? kAccumulatedBytes : 0);
  for (const GemmSample& sample : *known.samples) {
    const auto m = static_cast<double>(sample.m), n = static_cast<double>(sample.n),
               k = static_cast<double>(sample.k), batch = static_cast<double>(sample.batch);
    const LogShape at = place(curve, m, n, k, batch);
    curve.points.push_back({at, std::log(sample.seconds / at_peak(curve, roof, m, n, k, batch))});
    for (std::size_t d = 0; d < at.size(); ++d) {
      curve.low[d] = std::min(curve.low[d], at[d]);
      curve.high[d] = std::max(curve.high[d], at[d]);
    }
  }
  return curve;
}

// Transformer Engine's grouped linear layer calls cuBLAS once for each expert (cpp_extensions/gemm.py,
// general_grouped_gemm). On 40 forward and input-gradient GEMMs measured on B200 (MooreThreads/SimuMax), the
// sum of such calls is 8 % off in the median. One GEMM of all rows is 20 % off.
Estimate one_by_one(const GemmCurve& curve, Gemm gemm) {
  const auto experts = static_cast<double>(gemm.batch);
  gemm.batch = 1;
  const Estimate one = gemm_time(curve, gemm);
  return {experts * one.seconds, one.extrapolated};
}

Estimate gemm_time(const GemmCurve& curve, const Gemm& gemm) {
  if (gemm.of_experts && gemm.batch > 1 && !curve.grouped) return one_by_one(curve, gemm);
  const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
             k = static_cast<double>(gemm.k), batch = static_cast<double>(gemm.batch);
  const LogShape at = place(curve, m, n, k, batch);
  const Roofline roof = with_result(curve, curve.roof, gemm.result_bytes);
  const double seconds =
      curve.times_points * at_peak(curve, roof, m, n, k, batch) * std::exp(log_excess(curve, at));
  return {std::max({curve.launch_s, seconds, gemm_bound(roof, m, n, k, batch)}), outside(curve, at)};
}

Estimate gemm_time(const Profile& profile, const Gpu& gpu, const Gemm& gemm, const std::string& precision) {
  return gemm_time(gemm_curve(profile, gpu, precision, gemm_kind(gemm, precision)), gemm);
}

}  // namespace rehearse
