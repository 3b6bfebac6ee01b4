// What does each piece of the network cost, for a split of the layers by cost?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// The contiguous split over plan.stages() whose heaviest stage is lightest (balanced_split), by the priced
// seconds of F, I and W of embedding, layers and head. Requires a plan that is legal but for its layer split.
std::vector<int> layers_by_cost(const Model& model, const Plan& plan, const Cluster& cluster,
                                const Profile& profile);

}  // namespace rehearse
