// Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 6. With the activations of 1F1B there is no
// bubble, if F, I and W take equal times. The order is that of PyTorch's ScheduleZBVZeroBubble.
#include <algorithm>

#include "schedule/orders.h"
#include "schedule/orders/v_rank.h"

namespace rehearse {

namespace {

void add_backward(VRank& ops, int chunk) {
  ops.input(chunk);
  ops.weight(chunk);
}

void warm_up(VRank& ops, int pp, int rank) {
  for (int i = 0; i < 2 * (pp - rank) - 1; ++i) ops.forward(0);
  for (int i = 0; i < rank; ++i) {
    ops.forward(1);
    ops.forward(0);
  }
  for (int i = 0; i < pp - rank; ++i) {
    ops.forward(1);
    add_backward(ops, 1);
  }
}

void steady(VRank& ops, int filled) {
  while (ops.forwards(1) < ops.forwards(0) || ops.forwards(0) < filled) {
    if (ops.forwards(0) < filled) ops.forward(0);
    add_backward(ops, 0);
    ops.forward(1);
    add_backward(ops, 1);
  }
}

void cool_down(VRank& ops, int pp, int rank) {
  for (int i = 0; i < rank; ++i) {
    ops.input(0);
    ops.input(1);
  }
  for (int i = 0; i < pp - rank; ++i) {
    ops.input(0);
    ops.weight(0);
  }
  while (ops.weights(1) < ops.inputs(1)) ops.weight(1);
  while (ops.weights(0) < ops.inputs(0)) ops.weight(0);
}

}  // namespace

Schedule orders::zb_v(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  Schedule schedule{pp, 2 * pp, microbatches, {}};
  // The order is that of a filled pipeline, without the microbatches that do not exist.
  const int filled = std::max(2 * pp - 1, microbatches);
  for (int rank = 0; rank < pp; ++rank) {
    VRank ops(schedule.ranks.emplace_back(), pp, rank, microbatches);
    warm_up(ops, pp, rank);
    steady(ops, filled);
    cool_down(ops, pp, rank);
  }
  return schedule;
}

}  // namespace rehearse
