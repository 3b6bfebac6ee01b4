// Narayanan et al. 2019, "PipeDream: Generalized Pipeline Parallelism for DNN Training", with a flush at the
// end of the iteration (Narayanan et al. 2021, section 2.2). A rank runs pp - rank - 1 forwards to warm up.
// Then it alternates one forward and one backward, and ends with the remaining backwards.
#include <algorithm>

#include "schedule/orders.h"

namespace rehearse {

Schedule orders::one_f_one_b(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  Schedule schedule{pp, pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank) {
    RankOps& ops = schedule.ranks.emplace_back();
    const int warm_up = std::min(pp - rank - 1 + shape.ahead, microbatches);
    for (int i = 0; i < warm_up; ++i) ops.add(make_op(OpKind::forward, rank, i));
    for (int i = warm_up; i < microbatches; ++i) {
      ops.add(make_op(OpKind::forward, rank, i));
      ops.add(make_op(OpKind::backward, rank, i - warm_up));
    }
    for (int i = microbatches - warm_up; i < microbatches; ++i) ops.add(make_op(OpKind::backward, rank, i));
  }
  return schedule;
}

}  // namespace rehearse
