// Which split of the layers over the stages makes the step shortest?
#pragma once

#include <vector>

#include "run/iteration.h"

namespace rehearse {

// Of the splits by cost (cost/layer_costs.h) and the one that plan.layers_per_stage has, where it has one:
// the fastest by the reference engine, without jitter, of those that leave the headroom free; where none
// does, of those that fit, then of all. So it is never slower than the even split, nor than the plan's own.
// Requires an experiment that is legal but for its layer split, on nodes of one kind.
std::vector<int> fastest_split(const Experiment& experiment);

// The first of the splits by cost: nothing is run.
std::vector<int> likely_split(const Experiment& experiment);

// Legal for every model, to check the other rules before the split is known.
std::vector<int> any_split(const Plan& plan, const Model& model);

}  // namespace rehearse
