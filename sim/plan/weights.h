// How many of a block's parameters did DeepSpeed's ZeRO-3 of 2021 gather, and which of them twice in a
// backward pass? In how many buckets did it reduce their gradients?
#pragma once

#include <algorithm>

#include "plan/work.h"

namespace rehearse {

// Counts of parameters of more than 100,000 elements. Smaller ones stay whole on every rank
// (deepspeed/runtime/zero/config.py, stage3_param_persistence_threshold).
struct Weights {
  int all = 0;
  // Dropped and gathered again between the recompute of their block and its backward, because 1e9 elements or
  // more are used before they are needed again (stage3_max_reuse_distance).
  int dropped = 0;
  // All-reduces of the gradients. A new one begins before a bucket would exceed kDeepSpeedBucketElements
  // (deepspeed/runtime/zero/stage3.py, reduce_independent_p_g_buckets_and_remove_grads).
  int buckets = 0;
  int kept = 0;        // smaller parameters
  double largest = 0;  // elements of the largest of all
  double bytes = 0;    // of all, as they are gathered
  // While a parameter computes that is as large as DeepSpeed's limit of live elements, none is gathered ahead
  // (config.py, stage3_max_live_parameters; stage3.py, prefetch_next_sub_modules).
  bool gathered_ahead() const { return largest < 1e9; }

  Weights& operator+=(const Weights& other) {
    all += other.all;
    dropped += other.dropped;
    buckets += other.buckets;
    kept += other.kept;
    bytes += other.bytes;
    largest = std::max(largest, other.largest);
    return *this;
  }
};
Weights weights_of(const Block& block);

}  // namespace rehearse
