// How short can a step be at the best, whatever the order of the passes?
#pragma once

#include <vector>

#include "search/order/problem.h"

namespace rehearse {

// No order of these stages within the memory of the ranks ends before. The greatest over ranks of
//   begin: forwards and messages of the stages before the rank's first one
//   idle:  before its first gradient can come back a rank has forwards alone, as many as are there and as
//          its memory holds; after its last forward, the gradients alone that its memory holds
//   work:  F and the shorter of B and of I + W, of all its stages and microbatches
//   end:   a part of a reduction, and the optimizer step; or, after its last gradient, the way of that back
//          to stage 0. The rank may leave W for the time after, which makes its work longer where I + W take
//          longer than B: the best number of them, in fractions, is found.
Ticks lower_bound(const OrderProblem& problem);

// The same of each rank by itself.
std::vector<Ticks> lower_bounds(const OrderProblem& problem);

}  // namespace rehearse
