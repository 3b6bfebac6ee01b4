// How many seconds does each op of a plan take?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "cost/stage_times.h"
#include "cost/transfers.h"
#include "plan/work.h"

namespace rehearse {

struct Prices {
  OpTimes times;
  std::vector<StageTransfers> transfers = {};  // by stage
  double priced_s = 0;        // kernel seconds that went into them, one microbatch of all stages
  double extrapolated_s = 0;  // the part whose shape lies outside the profile's samples
  double unmeasured_s = 0;    // the part of kernels that nobody timed (Kernel::unmeasured)
  double launch_bound_s = 0;  // beside priced_s: kernels of all stages wait for the host to launch them
  double slowest_gpu = 1;     // times that GEMMs take on it, counted in all of these
};

// Collectives inside a Work entry stand between the kernels of one stream. They are exposed, except for the
// part that a kernel of Kernel::overlap hides. Each is priced with its links to itself. The engines add
// contention, because only they know when messages run.
Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile);

// The same, with the kernel shapes that other plans already met. A planner prices millions of plans out of a
// few thousand shapes. `times` belongs to cluster.gpu, `profile` and the plan's precision.
class KernelTimes;
Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             KernelTimes& times);

// Only the optimizer step, by pipeline rank. It is the only price that depends on how state is sharded.
std::vector<TimeParts> price_steps(const Work& work, const Plan& plan, const Cluster& cluster,
                                   const Profile& profile, KernelTimes& times);

}  // namespace rehearse
