// Qi et al. 2023, "Zero Bubble Pipeline Parallelism", section 2: the backward pass in two parts, of which
// only the first (I) is waited for; the second (W) fills what would be idle.
#include <algorithm>

#include "schedule/orders.h"

namespace rehearse {

namespace {

// `warm_up` forwards, then I, W and F in turn; W lags I by `lag` microbatches, so that every rank holds as
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

Schedule zb_h1(int pp, int microbatches) {
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    add_rank(schedule.ranks.emplace_back(), rank, microbatches, pp - rank, rank);
  return schedule;
}

Schedule zb_h2(int pp, int microbatches) {
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    add_rank(schedule.ranks.emplace_back(), rank, microbatches, 2 * (pp - rank) - 1, 2 * rank);
  return schedule;
}

}  // namespace rehearse
