// How short can a step be at best, for any order of the passes?
#pragma once

#include <vector>

#include "search/order/problem.h"

namespace rehearse {

// No order of these stages within the memory of the ranks ends before this time. It is the maximum over ranks
// of the sum of
//   begin: forwards and messages of the stages before the rank's first one
//   idle:  until its first gradient can arrive, a rank runs only forwards: those that have arrived and fit in
//          its memory. After its last forward it runs only the gradients that fit in its memory.
//   work:  F and the shorter of B and of I + W, of all its stages and microbatches
//   end:   a part of a reduction, and the optimizer step; or, after its last gradient, the path of that
//          gradient back to stage 0. The rank may postpone W until then. That makes its work longer where
//          I + W take longer than B. The best number of postponed W is found, in fractions.
Ticks lower_bound(const OrderProblem& problem);

// The same for each rank by itself.
std::vector<Ticks> lower_bounds(const OrderProblem& problem);

}  // namespace rehearse
