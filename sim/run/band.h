// How far may a predicted step time be off, by what its sources are known to be off?
#pragma once

#include <array>
#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "result/report.h"
#include "run/iteration.h"

namespace rehearse {

// 90th percentiles of |predicted / measured - 1| at what was left out of the samples.
struct KnownErrors {
  double products = 0;      // of weight matrices that were not timed; of times that are carried over from
                            // another GPU, in a profile or from it, what carrying over is off besides
  double extrapolated = 0;  // of matrices larger than all that were timed
  // Collectives up to 32 KiB, to 64 MiB, and above, by tables that the fit has not seen.
  std::array<double, 3> collectives{};
  double left_out = 0;  // of step times: what no error of a source explains
};

// What predictions of published runs miss besides, nine times of ten, each family counting once: what a
// framework does and nobody wrote down, clocks, other jobs' traffic (docs/accuracy.md; tested).
inline constexpr double kLeftOut = 0.08;

// Of kernels that nobody timed, which are costed by their FLOPs and bytes at the rates of other kernels:
// taken, not measured.
inline constexpr double kUntimed = 0.5;

// Zeros for what the profile has no samples of; kLeftOut. O(GEMM samples).
KnownErrors known_errors(const Profile& profile, const Gpu& gpu, const std::string& precision);

// Relative: the parts of the step time, each with its error, taken as independent. Idle time is that of
// kernels. `extrapolated_share` of kernel time as in RunFacts.
double uncertainty(const Report& report, const KnownErrors& errors);

// Report::uncertainty of a run of the experiment; 0 where pipeline ranks have nodes of several kinds.
double uncertainty(const Report& report, const Experiment& experiment);

}  // namespace rehearse
