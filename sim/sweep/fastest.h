// Which row of a sweep trains fastest?
#pragma once

#include "sweep/row.h"

namespace rehearse {

struct RowSpeed {
  RowState state = RowState::done;
  double tokens_per_s_per_gpu = 0;
  double step_time_s = 0;
};

// Order: finished rows, then rows that do not fit, then all others. Within these by tokens/s/GPU, as rows may
// differ in batch, sequence length and GPUs; then by step time.
bool is_faster(const RowSpeed& a, const RowSpeed& b);

}  // namespace rehearse
