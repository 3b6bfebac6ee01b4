// How are the ranks of a collective placed on the cluster?
#pragma once

#include <map>

#include "cost/collectives.h"
#include "plan/comm_group.h"

namespace rehearse {

// Computed when first asked for: groups of replicas are large.
class InnerGroups {
 public:
  InnerGroups(const Plan& plan, const Cluster& cluster);

  // Where groups are placed differently, those spread over most nodes set the pace of all.
  const GroupShape& of(CommGroup group);

 private:
  GroupShape slowest(CommGroup group) const;

  const Cluster& cluster_;
  bool lie_evenly_;
  int gpus_;
  CommGroups groups_;
  std::map<CommGroup, GroupShape> shapes_;
};

}  // namespace rehearse
