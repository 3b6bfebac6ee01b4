// How far may a predicted step time be off, by the known errors of its sources?
#pragma once

#include <array>
#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "result/report.h"
#include "run/iteration.h"

namespace rehearse {

// 90th percentiles of |predicted / measured - 1| on data that was held out of the samples.
struct KnownErrors {
  double products = 0;  // of weight matrices that were not timed, with the error of times carried over
                        // from another GPU, into the profile or from it, and with the spread of its timings
  double extrapolated = 0;  // of matrices larger than all that were timed
  // Collectives up to 32 KiB, to 64 MiB, and above, by tables that the fit has not seen. On a cluster that
  // was not measured, by tables of systems that the fit has not seen.
  std::array<double, 3> collectives{};
  double left_out = 0;  // of step times: residual error that no source explains
};

// Residual error of nine in ten predictions of published runs, where each family counts once. Causes:
// undocumented behaviour of frameworks, clocks, other jobs' traffic (docs/accuracy.md; tested).
inline constexpr double kLeftOut = 0.08;

// Error of kernels that nobody timed. They are costed by their FLOPs and bytes at the rates of other kernels.
// This figure is assumed, not measured.
inline constexpr double kUntimed = 0.5;

// Zeros where the profile has no samples; kLeftOut. `across`: the job sends messages across nodes.
// O(GEMM samples).
KnownErrors known_errors(const Profile& profile, const Cluster& cluster, const std::string& precision,
                         bool across);

// Relative to the step time: each part of it has its error, and errors are taken as independent. Idle time
// has the error of kernels. `extrapolated_share` of kernel time as in RunFacts.
double uncertainty(const Report& report, const KnownErrors& errors);

// Report::uncertainty of a run of the experiment; 0 where pipeline ranks have nodes of several kinds.
double uncertainty(const Report& report, const Experiment& experiment);

}  // namespace rehearse
