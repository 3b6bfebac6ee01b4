// How long does each piece of the network take, and how do its layers divide among the stages by that cost?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/balance.h"
#include "cost/profile.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// Priced seconds of F, I and W for the embedding, each layer, and the rest behind the layers (MTP layers and
// head). Requires a plan that is legal except for its layer split.
LayerCosts layer_costs(const Model& model, const Plan& plan, const Cluster& cluster, const Profile& profile);

// Candidate splits over plan.stages(), each once:
// - The one whose heaviest pipeline rank is lightest, searched from each of the next two. It is best where
//   only the sums of ranks count.
// - The one whose heaviest stage is lightest.
// - The one that fills stages in turn, which is the even split where there is one.
std::vector<std::vector<int>> splits_by_cost(const LayerCosts& costs, const Plan& plan);

}  // namespace rehearse
