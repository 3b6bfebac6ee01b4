// How much longer than their tiles take at peak rates did the GEMMs of similar shape take?
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/curves.h"
#include "cost/roofline.h"

namespace rehearse {

// Log of the waves (cost/gemm_tiles.h), times kWeightOfWaves; then of min(m, n), max(m, n) and k.
using LogShape = std::array<double, 4>;

// One precision and kind of product of a profile, made ready for look-up.
struct GemmCurve {
  struct Point {
    LogShape at;
    double log_excess = 0;  // measured time over that of the tiles, or of the roofline
  };
  Roofline roof;
  double launch_s = 0;
  double multiprocessors = 0;  // 0: not on record
  double times_points = 1;     // what takes longer than the points: Profile::fp8_split_sums
  std::vector<Point> points;
  LogShape low, high;    // bounding box of the points, of their sides
  bool grouped = false;  // the points are of grouped kernels, at the rows of one group
};

// Bytes moved for each element of a weight gradient that is added to an fp32 result, as profiles time them.
constexpr double kAccumulatedBytes = 8;

// How a profile calls the products of a kind: "fp16", "fp16/weight_gradient", "fp16/grouped/input_gradient".
std::string gemm_key(const std::string& precision, GemmPass pass, bool grouped);
std::vector<std::string> gemm_keys(const std::string& precision);

// MissingCalibration when the profile has no GEMM of `precision` and none that stands in for it (fp16 and
// bf16 stand in for each other: the tensor cores run both at one rate), or the GPU states no peak for it.
// Products of a kind that the profile does not tell apart are looked up among the forward ones; grouped ones,
// among those that fill the GPU with as many rows.
GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision,
                     GemmPass pass = GemmPass::forward, bool grouped = false);

Estimate gemm_time(const GemmCurve& curve, const Gemm& gemm);

}  // namespace rehearse
