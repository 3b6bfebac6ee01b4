// How close to the roofline did the GEMMs of similar shape come?
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/curves.h"
#include "cost/roofline.h"

namespace rehearse {

using LogShape = std::array<double, 3>;  // log of min(m, n), max(m, n), k

// One precision of a profile, made ready for look-up.
struct GemmCurve {
  struct Point {
    LogShape at;
    double log_efficiency = 0;  // roofline bound over measured time
  };
  Roofline roof;
  double launch_s = 0;
  std::vector<Point> points;
  LogShape low, high;  // bounding box of the points
};

// MissingCalibration when the profile has no GEMM of `precision` and none that stands in for it (fp16 and
// bf16 stand in for each other: the tensor cores run both at one rate), or the GPU states no peak for it.
GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision);

Estimate gemm_time(const GemmCurve& curve, const Gemm& gemm);

}  // namespace rehearse
