// How much longer did GEMMs of similar shape take than their tiles take at peak rates?
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/curves.h"
#include "cost/gemm_kind.h"
#include "cost/roofline.h"

namespace rehearse {

// Log of the waves (cost/gemm_tiles.h), times kWeightOfWaves; then of min(m, n), max(m, n) and k.
using LogShape = std::array<double, 4>;

// One precision and kind of GEMM of a profile, made ready for look-up.
struct GemmCurve {
  struct Point {
    LogShape at;
    double log_excess = 0;  // measured time over that of the tiles, or of the roofline
  };
  Roofline roof;   // of the cluster's GPU
  Roofline timed;  // of the GPU that the points were timed on (cost/timed_on.h)
  double launch_s = 0;
  double multiprocessors = 0;  // of the GPU that the points were timed on; 0: not on record
  double times_points = 1;     // of GEMMs that take longer than the points: Profile::fp8_split_sums
  double hidden_sums = 0;      // Profile::hidden_sums, where the points are of weight gradients
  std::vector<Point> points;
  LogShape low, high;    // bounding box of the points, of their sides
  bool grouped = false;  // the points are of grouped kernels, at the rows of one group
  bool splits_k = true;  // the kernels that load less than 16 bytes at once do not: their names tell
};

// Bytes moved for each element of a weight gradient that is added to an fp32 result, as profiles time them.
constexpr double kAccumulatedBytes = 8;

// MissingCalibration in two cases. The profile has no GEMM of `precision` and none that stands in for it, or
// the GPU states no peak for it. fp16 and bf16 stand in for each other: the tensor cores run both at one
// rate. Points are times over the tiles of the timed GPU; `gpu` is the cluster's.
//
// GEMMs of a kind that the profile does not tell apart are looked up as known_gemms() says. Grouped ones are
// then looked up among GEMMs that fill the GPU with as many rows.
GemmCurve gemm_curve(const Profile& profile, const Gpu& gpu, const std::string& precision,
                     const GemmKind& kind = {});

Estimate gemm_time(const GemmCurve& curve, const Gemm& gemm);

}  // namespace rehearse
