// Which layers should each stage have for the shortest step, judged by the lower bound without a search?
#pragma once

#include <vector>

#include "cost/balance.h"
#include "search/order/problem.h"

namespace rehearse {

// `split` after layers have moved one at a time, from the rank with the greatest bound, as long as the lower
// bound falls. `like`: the problem of some split of the same stages. Passes are assumed to divide the seconds
// of layers as all of its passes together do. Unlike a balance of ranks, the bound knows that the first rank
// begins first, and that the last gradient still has the whole path back.
std::vector<int> moved_layers(const LayerCosts& costs, const OrderProblem& like, std::vector<int> split);

}  // namespace rehearse
