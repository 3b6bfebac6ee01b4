// How does an order of few microbatches continue for many?
#pragma once

#include <optional>

#include "search/order/clock.h"

namespace rehearse {

// Between two points of a steady order, each rank runs every one of its passes for the same number of
// microbatches, the `period`. These passes are repeated until there are `microbatches` of them. Nothing where
// the order has no such period from the instant `cut` on, or where the rest is no multiple of it. `clock`:
// after it has run the order.
std::optional<RankOrders> unroll(const OrderProblem& problem, const RankOrders& orders,
                                 const OrderClock& clock, Ticks cut, int period, int microbatches);

}  // namespace rehearse
