#include "run/outside_allocator.h"

#include "cost/communicators.h"

namespace rehearse {

std::vector<OutsideAllocator> outside_allocator(const Experiment& experiment, const Plan& plan,
                                                const Work& work) {
  const StageNodes& nodes = experiment.stage_nodes;
  std::vector<OutsideAllocator> outside;
  for (int rank = 0; rank < plan.pp; ++rank) {
    const Cluster& cluster = nodes.empty() ? experiment.cluster : nodes.of_rank(rank).cluster;
    const Profile& profile = nodes.empty() ? experiment.profile : nodes.of_rank(rank).profile;
    outside.push_back({context_bytes(cluster, plan),
                       communicator_bytes(work, experiment.model, plan, cluster, profile, rank)});
  }
  return outside;
}

}  // namespace rehearse
