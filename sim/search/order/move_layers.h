// Which layers of each stage let a step be shortest, as far as the bound tells without a search?
#pragma once

#include <vector>

#include "cost/balance.h"
#include "search/order/problem.h"

namespace rehearse {

// `split` with layers moved one at a time, from the rank whose bound is the greatest, as long as the lower
// bound falls. `like`: the problem of some split of the same stages; passes are taken to divide the seconds
// of layers as all of its passes together do. Unlike a balance of ranks, it knows that the first rank begins
// first and that the last gradient has the whole way back before it.
std::vector<int> moved_layers(const LayerCosts& costs, const OrderProblem& like, std::vector<int> split);

}  // namespace rehearse
