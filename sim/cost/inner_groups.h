// How does the group of a collective lie on the cluster?
#pragma once

#include <array>
#include <optional>

#include "cost/collectives.h"
#include "plan/ranks.h"
#include "plan/work.h"

namespace rehearse {

// Found when first asked for: groups along dp are large.
class InnerGroups {
 public:
  InnerGroups(const Plan& plan, const Cluster& cluster);

  // Where groups lie differently those that are spread over most nodes set the pace of all.
  const GroupShape& of(const Collective& collective);

 private:
  GroupShape slowest(const RankGrid& grid, Axis axis) const;
  const GroupShape& all_ranks();

  const Cluster& cluster_;
  bool lie_evenly_;
  RankGrid grid_, experts_;
  std::array<std::optional<GroupShape>, 5> groups_, expert_groups_;  // by axis
  std::optional<GroupShape> all_;
};

}  // namespace rehearse
