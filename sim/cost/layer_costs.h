// What does each piece of the network cost, and how do its layers divide among the stages by that?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/balance.h"
#include "cost/profile.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

// The priced seconds of F, I and W of embedding, layers, and what follows them, each as a stage of its own.
// Requires a plan that is legal but for its layer split.
LayerCosts layer_costs(const Model& model, const Plan& plan, const Cluster& cluster, const Profile& profile);

// Splits over plan.stages() that may be fast, each once: first the one whose heaviest pipeline rank is
// lightest, which is best where nothing but the sums of ranks counts; then the one whose heaviest stage is;
// the one that fills stages in turn, and the even one where there is one.
std::vector<std::vector<int>> splits_by_cost(const LayerCosts& costs, const Plan& plan);

}  // namespace rehearse
