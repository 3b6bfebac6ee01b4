// Which nodes does each pipeline rank have, where a job mixes GPUs?
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/price.h"
#include "cost/profile.h"
#include "plan/plan.h"
#include "plan/work.h"

namespace rehearse {

// GPUs, their links and their host, with the profile that fits them. NICs and fabric are the job's.
struct NodeKind {
  Cluster cluster;
  Profile profile;
};

struct StageNodes {
  std::vector<NodeKind> kinds;
  std::vector<std::size_t> kind_of_rank;  // by pipeline rank; empty: all have the job's cluster and profile

  bool empty() const { return kind_of_rank.empty(); }
  const NodeKind& of_rank(int pipeline_rank) const {
    return kinds[kind_of_rank[static_cast<std::size_t>(pipeline_rank)]];
  }
};

// "2*dgx-h100,2*dgx-a100": the number of pipeline ranks on nodes of the named cluster, in order. Empty for
// empty text. InputError when
// - the counts do not add up to plan.pp;
// - nodes of `job` would hold ranks of two kinds;
// - a kind has another number of GPUs a node, or a wiring of its own.
//
// MissingCalibration for GPUs without a profile.
StageNodes read_stage_nodes(const std::string& text, const Plan& plan, const Cluster& job);

// As price(), each stage on its own nodes.
Prices price_stages(const Work& work, const Plan& plan, const StageNodes& nodes);

}  // namespace rehearse
