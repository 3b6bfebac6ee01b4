#include "run/symmetry.h"

#include <algorithm>

#include "cluster/fabric.h"
#include "cost/even.h"

namespace rehearse {

bool are_symmetric(const Plan& plan, const Cluster& cluster, const Conditions& conditions) {
  const auto is_rank = [](const Slow& slow) { return slow.part == Slow::Part::rank; };
  if (conditions.has_jitter() || !std::all_of(conditions.slow.begin(), conditions.slow.end(), is_rank))
    return false;
  if (!conditions.slow.empty() && gpus_of_a_nic(cluster) != 1) return false;
  if (!cluster.node.wiring.empty() || has_shared_links(cluster.fabric)) return false;
  return lies_evenly(plan, cluster);
}

}  // namespace rehearse
