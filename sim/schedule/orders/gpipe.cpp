// Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism".
// Backwards run in the order of the forwards, so that the first activation is released first.
#include "schedule/orders.h"

namespace rehearse {

Schedule orders::gpipe(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank) {
    RankOps& ops = schedule.ranks.emplace_back();
    for (int i = 0; i < microbatches; ++i) ops.add(make_op(OpKind::forward, rank, i));
    for (int i = 0; i < microbatches; ++i) ops.add(make_op(OpKind::backward, rank, i));
  }
  return schedule;
}

}  // namespace rehearse
