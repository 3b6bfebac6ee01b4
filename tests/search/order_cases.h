// Pipelines for which orders are sought: drawn at random, or uniform.
#pragma once

#include <cstdint>
#include <vector>

#include "search/order/orders.h"

namespace rehearse {

struct OrderCase {
  OrderProblem problem;
  Plan plan;                      // of as many ranks, chunks and microbatches
  std::vector<RankOrders> named;  // every named schedule that lays the stages so
};

enum class Laid { loop, v };

// Times that differ between stages, messages and reductions, and memory for some of the named schedules.
OrderCase order_case(std::uint32_t seed);

// F = I = W = 1 s on a rank, B = 2 s, free messages; memory without limit.
OrderCase uniform_case(int ranks, int microbatches, int chunks, Laid laid);

// Lets no rank hold more than a schedule of the case does.
void limit_to(OrderCase& given, const RankOrders& orders);

}  // namespace rehearse
