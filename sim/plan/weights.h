// How many of a block's parameters does DeepSpeed's ZeRO-3 exchange, and which of them twice in a backward
// pass?
#pragma once

#include "plan/work.h"

namespace rehearse {

// Parameters of more than 100,000 elements: smaller ones stay whole on every rank
// (deepspeed/runtime/zero/config.py, stage3_param_persistence_threshold).
struct Weights {
  int all = 0;
  // Dropped, and gathered again, between the recompute of their block and its backward: 1e9 elements or more
  // are computed with until they are needed (stage3_max_reuse_distance).
  int dropped = 0;

  Weights& operator+=(const Weights& other) {
    all += other.all;
    dropped += other.dropped;
    return *this;
  }
};
Weights weights_of(const Block& block);

}  // namespace rehearse
