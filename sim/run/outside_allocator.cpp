#include "run/outside_allocator.h"

#include <utility>

#include "cost/communicators.h"

namespace rehearse {

std::vector<OutsideAllocator> outside_allocator(const Experiment& experiment, const Plan& plan,
                                                const Work& work) {
  const auto on = [&](const Cluster& cluster, const Profile& profile) {
    std::vector<OutsideAllocator> outside;
    for (CommunicatorBytes& held : communicator_bytes(work, experiment.model, plan, cluster, profile))
      outside.push_back({context_bytes(cluster, plan), std::move(held)});
    return outside;
  };
  const StageNodes& nodes = experiment.stage_nodes;
  if (nodes.empty()) return on(experiment.cluster, experiment.profile);
  std::vector<std::vector<OutsideAllocator>> by_kind;
  for (const NodeKind& kind : nodes.kinds) by_kind.push_back(on(kind.cluster, kind.profile));
  std::vector<OutsideAllocator> outside;
  for (std::size_t rank = 0; rank < nodes.kind_of_rank.size(); ++rank)
    outside.push_back(by_kind[nodes.kind_of_rank[rank]][rank]);
  return outside;
}

}  // namespace rehearse
