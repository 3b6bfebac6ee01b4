// Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2. The backward pass has two parts. Other ranks
// wait only for the first (I); the second (W) fills idle time. H1 holds the activations of 1F1B; its bubble
// is (p-1)(F + I - W). H2 holds 2p - 1 microbatches; its bubble is (p-1)(F + I - 2W) from a rank's first op
// to its last.
#include <algorithm>

#include "schedule/orders.h"

namespace rehearse {

namespace {

// `warm_up` forwards, then I, W and F in turn. W lags I by `lag` microbatches, so that every rank holds as
// many activations as the first.
void add_rank(RankOps& ops, int stage, int microbatches, int warm_up, int lag) {
  ops.reserve(3 * static_cast<std::size_t>(microbatches));
  for (int i = 0; i < std::min(warm_up, microbatches); ++i) ops.add(make_op(OpKind::forward, stage, i));
  for (int i = 0; i < microbatches; ++i) {
    ops.add(make_op(OpKind::backward_input, stage, i));
    if (i >= lag) ops.add(make_op(OpKind::backward_weight, stage, i - lag));
    if (i + warm_up < microbatches) ops.add(make_op(OpKind::forward, stage, i + warm_up));
  }
  for (int i = std::max(0, microbatches - lag); i < microbatches; ++i)
    ops.add(make_op(OpKind::backward_weight, stage, i));
}

}  // namespace

Schedule orders::zb_h1(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    add_rank(schedule.ranks.emplace_back(), rank, microbatches, pp - rank, rank);
  return schedule;
}

Schedule orders::zb_h2(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    add_rank(schedule.ranks.emplace_back(), rank, microbatches, 2 * (pp - rank) - 1, 2 * rank);
  return schedule;
}

}  // namespace rehearse
