// Which row of a sweep trains fastest?
#pragma once

#include "sweep/row.h"

namespace rehearse {

struct RowSpeed {
  RowState state = RowState::done;
  double tokens_per_s_per_gpu = 0;
  double step_time_s = 0;
};

// Rows that are done before those that do not fit, these before all others. Then by tokens/s/GPU: rows may
// differ in batch, sequence length and GPUs. Then by step time.
bool is_faster(const RowSpeed& a, const RowSpeed& b);

}  // namespace rehearse
