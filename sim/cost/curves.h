// How long does one kernel take by this profile? Interpolated by shape; what lies outside the samples says
// so. `gpu` is the cluster's; times of a profile of another GPU are carried over (cost/timed_on.h).
#pragma once

#include <cstdint>
#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

struct Estimate {
  double seconds = 0;
  bool extrapolated = false;  // the shape lies outside what was measured
};

// Time over that of the tiles at peak rates, interpolated between the nearest measured shapes.
// MissingCalibration when the profile has no GEMM of this precision and none that stands in for it.
Estimate gemm_time(const Profile& profile, const Gpu& gpu, const Gemm& gemm, const std::string& precision);

// Kernels of attention compute whole tiles, here of 128 keys: through a window of w a block of queries meets
// w + 128, of which each query needs w. The keys that a block loops over at most, and the FLOPs that rates
// are of, of which a causal mask skips half (Dao 2023, FlashAttention-2, sections 3.1 and 4.1).
std::int64_t looped_keys(const Attention& attention);
double tiled_flops(const Attention& attention);

// `precision` of the plan.
Estimate attention_time(const Profile& profile, const Gpu& gpu, const Attention& attention,
                        const std::string& precision = "bf16");

// What a profile calls the curve of a kind: "norm", "norm_backward", "rotary", ...
std::string curve_name(Pointwise kind);
std::string curve_name(const Scan& scan);

// A memory-bound kernel that moves `bytes` in all. By the kind's own curve, else by that of the kernel which
// streams most like it, else by a plain copy's. Pointwise::rearrange takes no time in a profile that
// `rehearse calibrate` took: the kernels that were timed do without.
Estimate pointwise_time(const Profile& profile, const Gpu& gpu, Pointwise kind, double bytes);

// The kernels of a scan that reads and writes `tensors`: by its own curve, as `rehearse calibrate` takes it,
// else by cost/scan_time.h, and of CPUs by a copy's.
struct ScanTensors {
  double bytes = 0;          // in all
  double element_bytes = 2;  // of activations
};
Estimate scan_time(const Profile& profile, const Gpu& gpu, const Scan& scan, const ScanTensors& tensors);

}  // namespace rehearse
