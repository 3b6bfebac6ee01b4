// Which split of the layers over the stages makes the step shortest?
#pragma once

#include <vector>

#include "run/iteration.h"

namespace rehearse {

// The candidates are the splits by cost (cost/layer_costs.h) and the plan's own split, if it has one. The
// result is the fastest by the reference engine, without jitter, of those that leave the headroom free. If
// none does, of those that fit; if none fits, of all. So it is never slower than the even split, nor than the
// plan's own. Requires an experiment that is legal except for its layer split, on nodes of one kind.
std::vector<int> fastest_split(const Experiment& experiment);

// The first of the splits by cost, without running anything.
std::vector<int> likely_split(const Experiment& experiment);

// A split that is legal for every model, to check the other rules before the split is known.
std::vector<int> any_split(const Plan& plan, const Model& model);

}  // namespace rehearse
