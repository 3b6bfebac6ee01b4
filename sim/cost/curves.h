// How long does one kernel take by this profile? Times are interpolated by shape. An estimate tells whether
// its shape lies outside the samples. `gpu` is the cluster's; times of a profile of another GPU are carried
// over (cost/timed_on.h).
#pragma once

#include <cstdint>
#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

struct Estimate {
  double seconds = 0;
  bool extrapolated = false;  // the shape lies outside the samples
};

// Interpolates the ratio of time to tile time at peak rates between the nearest measured shapes.
// MissingCalibration when the profile has no GEMM of this precision and none that stands in for it.
Estimate gemm_time(const Profile& profile, const Gpu& gpu, const Gemm& gemm, const std::string& precision);

// Attention kernels compute whole tiles, here of 128 keys. Through a window of w, a block of queries meets w
// + 128 keys, while each query needs w. A block loops over looped_keys() at most. Rates refer to
// tiled_flops(), of which a causal mask skips half (Dao 2023, FlashAttention-2, sections 3.1 and 4.1).
std::int64_t looped_keys(const Attention& attention);
double tiled_flops(const Attention& attention);

// `precision`: of the plan.
Estimate attention_time(const Profile& profile, const Gpu& gpu, const Attention& attention,
                        const std::string& precision = "bf16");

// The name that a profile gives to the curve of a kind: "norm", "norm_backward", "rotary", ...
std::string curve_name(Pointwise kind);
std::string curve_name(const Scan& scan);

// A memory-bound kernel that moves `bytes` in all. Its time comes from the kind's own curve, else from the
// most similar kernel's, else from a plain copy's. Pointwise::rearrange takes no time in a profile taken by
// `rehearse calibrate`, because the timed kernels do not need it.
Estimate pointwise_time(const Profile& profile, const Gpu& gpu, Pointwise kind, double bytes);

// The kernels of a scan that reads and writes `tensors`. Their time comes from the scan's own curve in a
// profile of `rehearse calibrate`, else from cost/scan_time.h. CPUs use a copy's curve.
struct ScanTensors {
  double bytes = 0;          // in all
  double element_bytes = 2;  // of activations
};
Estimate scan_time(const Profile& profile, const Gpu& gpu, const Scan& scan, const ScanTensors& tensors);

}  // namespace rehearse
