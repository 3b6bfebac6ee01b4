// How many seconds does each op of a plan take?
#pragma once

#include <array>

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/stage_times.h"
#include "plan/work.h"

namespace rehearse {

// How many times as long as on links of their own the transfers of collectives take, by Axis of their group.
struct Stretch {
  std::array<double, 5> groups = {1, 1, 1, 1, 1};
  std::array<double, 5> experts = {1, 1, 1, 1, 1};  // groups among the experts' ranks
};

struct Prices {
  OpTimes times;
  double priced_s = 0;        // kernel seconds that went into them, one microbatch of all stages
  double extrapolated_s = 0;  // the part whose shape lies outside the profile's samples
  double launch_bound_s = 0;  // beside priced_s: kernels of all stages wait for the host to launch them
};

// Collectives inside a Work entry stand between the kernels of one stream and are exposed, but for the part
// that a kernel of Kernel::overlap hides. Hiding is free: what a collective takes of a GEMM's
// multiprocessors and memory bandwidth is not priced.
Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             const Stretch& stretch = {});

// The same, with the kernel shapes that other plans already met: a planner prices millions of plans out of a
// few thousand shapes. `times` belongs to cluster.gpu, `profile` and the plan's precision.
class KernelTimes;
Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             KernelTimes& times, const Stretch& stretch = {});

// Of that the optimizer step alone, by pipeline rank: of the prices, only it hangs on how state is sharded.
std::vector<TimeParts> price_steps(const Work& work, const Plan& plan, const Cluster& cluster,
                                   const Profile& profile, KernelTimes& times);

}  // namespace rehearse
